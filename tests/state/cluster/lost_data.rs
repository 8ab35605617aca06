//! A server that comes back without its data.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline::cluster::Shared;
use paceline::limiter::Limiter;
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Window};
use paceline_testing::full::full_or;
use paceline_testing::servers::Redis;

use super::failure::send_command;
use super::held_proxy::HeldProxy;
use super::shared::{admitted, closed, limiter};
use paceline_testing::until;

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
        // Neither process decides before both have reported what they know.
        for (limiter, shared) in [(&other, &shared[1]), (&one, &shared[0])] {
            let decided = shared.status().decided;
            until("the usage is restored", || {
                assert!(limiter.try_acquire("k", &Cost::new()).is_err());
                shared.status().decided > decided
            });
        }
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

/// A process that takes all of a limit, and one that doesn't know of that, in a server that is restarted
/// without its data. The connection of the first one goes through a proxy.
struct Restarted {
    redis: Redis,
    address: SocketAddr,
    proxy: HeldProxy,
    user: Arc<Shared>,
    other: Arc<Shared>,
}

impl Restarted {
    fn new() -> Self {
        let mut redis = Redis::start();
        let address = redis.server().address;
        let proxy = HeldProxy::start(address);
        let other = closed(&redis.url()).connect().unwrap();
        let user = closed(&format!("redis://{}", proxy.address)).connect().unwrap();
        until("both are counted", || [&user, &other].iter().all(|s| s.status().members == 2));
        let limiter = limiter(&user, Quota::new().rpd(4));
        limiter
            .try_acquire("k", &Cost::new().requests(4))
            .unwrap()
            .settle(&Cost::new().requests(4));
        until("the end is reported", || user.status().unacknowledged == 0);
        proxy.hold();
        redis.restart();
        Self { redis, address, proxy, user, other }
    }

    /// Returns a field of the reports in the server.
    fn report(&self, field: &str) -> String {
        let key = "paceline:{account}#reports";
        let answer = send_command(self.address, &format!("HGET {key} {field}"));
        answer.lines().nth(1).unwrap_or_default().to_owned()
    }
}

#[test]
fn used_limit_is_refused_until_all_processes_have_reported() {
    let restarted = Restarted::new();
    let other = limiter(&restarted.other, Quota::new().rpd(4));
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| other.try_acquire("k", &Cost::new()).is_ok());
        until("the process waits for two reports", || restarted.report("expected") == "2");
        assert!(!restarted.other.status().connected);
        restarted.proxy.release();
        assert!(!asked.join().unwrap(), "granted again");
    });
    until("both are connected", || {
        [&restarted.user, &restarted.other].iter().all(|shared| shared.status().connected)
    });
    assert!(other.try_acquire("k", &Cost::new()).is_err(), "granted again");
    assert!(other.try_acquire("another", &Cost::new()).is_ok());
}

#[test]
fn process_that_never_reports_is_not_waited_for_long() {
    let restarted = Restarted::new();
    let other = limiter(&restarted.other, Quota::new().rpd(4));
    until("the process waits for two reports", || restarted.report("expected") == "2");
    until("the process is connected", || restarted.other.status().connected);
    assert_eq!(restarted.report("reported"), "1");
    assert!(other.try_acquire("k", &Cost::new()).is_ok(), "nobody else knows of the usage");
    // A process that has started since waits for nobody.
    let new = closed(&restarted.redis.url()).connect().unwrap();
    until("the new process is connected", || new.status().connected);
    let generation = restarted.report("generation");
    restarted.proxy.release();
    until("the late process is connected", || restarted.user.status().connected);
    assert_eq!(restarted.report("generation"), generation);
    assert!(other.try_acquire("k", &Cost::new()).is_err(), "the late process has reported");
}

#[test]
fn usage_since_the_snapshot_of_a_server_is_reported() {
    let mut redis = Redis::with(&["--dbfilename", "dump.rdb"]);
    let address = redis.server().address;
    let shared = [(); 2].map(|()| closed(&redis.url()).connect().unwrap());
    until("both are counted", || shared.iter().all(|shared| shared.status().members == 2));
    let [user, other] = shared.each_ref().map(|shared| limiter(shared, Quota::new().rpd(1)));
    assert_eq!(send_command(address, "SAVE"), "+OK\r\n");
    user.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new());
    until("the end is reported", || shared[0].status().unacknowledged == 0);
    // At least one heartbeat is missing in the snapshot, too.
    let number = || send_command(address, "HGET paceline:{account}#reports number");
    let before = number();
    until("a heartbeat is recorded", || number() != before);
    redis.restart();
    assert_ne!(send_command(address, "EXISTS paceline:{account}#reports"), ":0\r\n", "no snapshot");
    until("both are connected", || shared.iter().all(|shared| shared.status().connected));
    let decided = shared[1].status().decided;
    until("the store decides", || {
        assert!(other.try_acquire("k", &Cost::new()).is_err(), "granted again");
        shared[1].status().decided > decided
    });
}

/// Ways in which a server loses its data.
#[derive(Debug, Clone, Copy)]
enum Loss {
    Restart,
    Flush,
}

impl Loss {
    fn happen(self, redis: &mut Redis) {
        match self {
            Self::Restart => redis.restart(),
            Self::Flush => {
                assert_eq!(send_command(redis.server().address, "FLUSHALL"), "+OK\r\n");
            }
        }
    }
}

#[test]
fn places_in_flight_stay_taken_in_an_emptied_server() {
    let mut redis = Redis::start();
    let shared = [(); 3].map(|()| closed(&redis.url()).connect().unwrap());
    until("all are counted", || shared.iter().all(|shared| shared.status().members == 3));
    let limiters = shared.each_ref().map(|shared| limiter(shared, Quota::new().concurrency(10)));
    let mut permits = admitted(&limiters[0], 4);
    permits.extend(admitted(&limiters[1], 6));
    assert_eq!(permits.len(), 10);
    for loss in [Loss::Flush, Loss::Restart, Loss::Restart, Loss::Flush] {
        loss.happen(&mut redis);
        // The last one has never called the key.
        for at in [2, 0, 1] {
            let decided = shared[at].status().decided;
            until("the server decides", || {
                assert!(limiters[at].try_acquire("k", &Cost::new()).is_err(), "{loss:?}, {at}");
                shared[at].status().decided > decided
            });
        }
    }
    drop(permits.pop());
    drop(permits.remove(0));
    until("the ends are reported", || shared.iter().all(|s| s.status().unacknowledged == 0));
    assert_eq!(admitted(&limiters[2], 9).len(), 2);
}

#[test]
fn requests_in_flight_count_once_in_an_emptied_server_and_are_settled() {
    for (algorithm, loss) in [
        (Algorithm::TokenBucket, Loss::Restart),
        (Algorithm::SlidingWindow, Loss::Restart),
        (Algorithm::SlidingWindow, Loss::Flush),
        (Algorithm::ClockWindow, Loss::Restart),
    ] {
        let mut redis = Redis::start();
        let limit = Limit::new(Dimension::Tokens, 10_000, Window::DAY).unwrap();
        let quota = Quota::new().limit(limit.with_algorithm(algorithm));
        let shared = [(); 8].map(|()| closed(&redis.url()).connect().unwrap());
        until("all are counted", || shared.iter().all(|shared| shared.status().members == 8));
        let limiters = shared.each_ref().map(|shared| limiter(shared, quota.clone()));
        let cost = |tokens| Cost::new().tokens(tokens);
        let all = limiters.iter().cycle().take(64);
        let permits: Vec<_> = all.map(|l| l.try_acquire("k", &cost(100)).unwrap()).collect();
        loss.happen(&mut redis);
        let state = |limiter: &Limiter| {
            let decided = || shared.iter().map(|shared| shared.status().decided).sum::<u64>();
            let before = decided();
            until("the server decides", || {
                assert!(limiter.try_acquire("k", &cost(3_601)).is_err(), "{algorithm:?}");
                decided() > before
            });
            let stats = limiter.stats("k");
            (stats.limits[0].used, stats.limits[0].held)
        };
        assert_eq!(state(&limiters[3]), (0, 6_400), "{algorithm:?}, {loss:?}");
        permits.into_iter().for_each(|permit| permit.settle(&cost(6)));
        until("the ends are reported", || shared.iter().all(|s| s.status().unacknowledged == 0));
        let rest = limiters[5].try_acquire("k", &cost(10_000 - 64 * 6));
        assert!(rest.is_ok(), "{algorithm:?}, {loss:?}");
        assert!(limiters[5].try_acquire("k", &cost(2)).is_err(), "{algorithm:?}, {loss:?}");
    }
}

#[test]
fn process_that_has_not_used_a_key_waits_for_reports_after_a_flush() {
    let mut redis = Redis::start();
    let shared = [(); 2].map(|()| closed(&redis.url()).connect().unwrap());
    until("both are counted", || shared.iter().all(|shared| shared.status().members == 2));
    let [user, other] = shared.each_ref().map(|shared| limiter(shared, Quota::new().rpd(1)));
    for key in ["a", "b", "c", "d"] {
        user.try_acquire(key, &Cost::new()).unwrap().settle(&Cost::new());
        until("the end is reported", || shared[0].status().unacknowledged == 0);
        Loss::Flush.happen(&mut redis);
        let decided = shared[1].status().decided;
        until("the server decides", || {
            assert!(other.try_acquire(key, &Cost::new()).is_err(), "{key} is granted again");
            shared[1].status().decided > decided
        });
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
