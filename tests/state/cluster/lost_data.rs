//! A server that comes back without its data.

use std::time::{Duration, Instant};

use tollgate::limiter::Limiter;
use tollgate::quota::{Algorithm, Cost, Dimension, Limit, Quota, Window};
use tollgate_testing::full::full_or;
use tollgate_testing::servers::Redis;

use super::failure::send_command;
use super::shared::{closed, limiter, until};

#[test]
fn empty_server_is_told_of_all_keys() {
    let keys: u64 = full_or(30_000, 3_000);
    let mut redis = Redis::start();
    let (first, second) = (closed(&redis.url()), closed(&redis.url()));
    let [first, second] = [first, second].map(|builder| builder.connect().unwrap());
    let [user, other] = [&first, &second].map(|shared| limiter(shared, Quota::new().rpd(1)));
    for key in 0..keys {
        user.try_acquire(&format!("k{key}"), &Cost::new()).unwrap().settle(&Cost::new());
    }
    until("all ends are reported", || first.status().unacknowledged == 0);
    redis.restart();
    // The process that used the keys makes no further calls on them.
    let address = redis.server().address;
    until("the usage is restored", || {
        let size = send_command(address, "DBSIZE").trim_matches([':', '\r', '\n']).parse::<u64>();
        size.is_ok_and(|size| size >= keys)
    });
    let again =
        (0..keys).filter(|key| other.try_acquire(&format!("k{key}"), &Cost::new()).is_ok()).count();
    assert_eq!(again, 0, "of {keys} keys");
}

/// A grant: its amount, just before the request and just after it.
type Grant = (u64, Instant, Instant);

#[test]
fn window_goes_on_where_it_was_in_an_empty_server() {
    for algorithm in [Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        let mut redis = Redis::start();
        let window = Window::new(WINDOW).unwrap();
        let limit = Limit::new(Dimension::Requests, 100, window).unwrap();
        let quota = Quota::new().limit(limit.with_algorithm(algorithm));
        let shared = [(); 2].map(|()| closed(&redis.url()).connect().unwrap());
        let [one, other] = shared.each_ref().map(|shared| limiter(shared, quota.clone()));
        let begin = Instant::now();
        let mut grants: Vec<Grant> = Vec::new();
        let mut take = |limiter: &Limiter, amount: u64| {
            let asked = Instant::now();
            if let Ok(permit) = limiter.try_acquire("k", &Cost::new().requests(amount)) {
                permit.settle(&Cost::new().requests(amount));
                grants.push((amount, asked, Instant::now()));
            }
        };
        take(&one, 30);
        park_until(begin + WINDOW / 2);
        take(&other, 30);
        take(&one, 40);
        until("the ends are reported", || shared.iter().all(|s| s.status().unacknowledged == 0));
        redis.restart();
        // A process decides as soon as it has reported what it knows itself: here, the one that knows all.
        let decided = shared[0].status().decided;
        until("the usage is restored", || {
            assert!(one.try_acquire("k", &Cost::new()).is_err());
            shared[0].status().decided > decided
        });
        // What is back from the first grants, before that of the later ones is.
        while begin.elapsed() < WINDOW * 5 / 4 {
            take(&one, 10);
            take(&other, 10);
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let amounts: Vec<u64> = grants.iter().map(|(amount, ..)| *amount).collect();
        let again = if algorithm == Algorithm::SlidingWindow { 3 } else { 10 };
        assert_eq!(amounts[..3], [30, 30, 40], "{algorithm:?}");
        assert_eq!(amounts[3..], vec![10; again], "{algorithm:?}");
        // Each grant was decided between its two times. A fixed window begins at its first grant.
        let is_start = |at: &usize| algorithm == Algorithm::SlidingWindow || *at == 0 || *at == 3;
        for start in (0..grants.len()).filter(is_start) {
            let (_, from, _) = grants[start];
            let within = grants[start..].iter().take_while(|(_, _, end)| *end < from + WINDOW);
            let sum: u64 = within.map(|(amount, ..)| amount).sum();
            assert!(sum <= 100, "{algorithm:?}: {sum} within the window");
        }
    }
}

fn park_until(time: Instant) {
    while let Some(left) =
        time.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    {
        std::thread::park_timeout(left);
    }
}

/// The length of a window, long beside the restart of a server.
const WINDOW: Duration = Duration::from_secs(8);
