//! Services and requests that their tasks keep without polling them: nobody waits behind one for longer than a
//! second.

use std::cell::Cell;
use std::pin::{Pin, pin};

use futures_util::future::join_all;
use futures_util::poll;
use proptest::prelude::*;
use tokio::time::{sleep, timeout};
use tollgate::limiter::{Acquire, AcquireError};
use tollgate_testing::full::full_or;

use super::*;

/// A waiter of one or two keys, and its end.
#[derive(Debug, Clone, Copy)]
struct Waiter {
    kind: Kind,
    /// The index of its keys in [`KEYS`].
    keys: usize,
    /// Milliseconds.
    arrives: u64,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Request,
    Service,
    Capacity,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// It is polled until it is served.
    Served,
    /// It is kept, but no longer polled after this many milliseconds.
    Forgotten(u64),
    Dropped(u64),
}

/// A limit of one request per second under each key.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Rate,
    /// One request in flight, and each takes a second.
    Flight,
}

const KEYS: [&[&str]; 4] = [&["a"], &["b"], &["a", "b"], &["b", "a"]];

fn waiters() -> impl Strategy<Value = Vec<Waiter>> {
    let end = prop_oneof![
        4 => Just(End::Served),
        3 => (0..4_000_u64).prop_map(End::Forgotten),
        1 => (0..4_000_u64).prop_map(End::Dropped),
    ];
    let kind = prop_oneof![
        3 => Just(Kind::Request),
        3 => Just(Kind::Service),
        1 => Just(Kind::Capacity),
    ];
    let keys = prop_oneof![3 => Just(0_usize), 1 => 1..4_usize];
    let waiter = (kind, keys, 0..5_000_u64, end);
    let waiter = waiter.prop_map(|(kind, keys, arrives, end)| Waiter { kind, keys, arrives, end });
    proptest::collection::vec(waiter, 1..12)
}

/// Serves a waiter. Under [`Limit::Flight`], it is in flight for a second.
async fn serve(limiter: Limiter, waiter: Waiter, limit: Limit) {
    let keys = KEYS[waiter.keys];
    let in_flight = match limit {
        Limit::Rate => Duration::ZERO,
        Limit::Flight => S,
    };
    match waiter.kind {
        Kind::Request => {
            let permit = limiter.acquire_all(keys, &Cost::new()).await.unwrap();
            sleep(in_flight).await;
            permit.settle(&Cost::new());
        }
        Kind::Service => {
            let classify = move |_: &u64| Classified::new(keys[0], Cost::new());
            let layer = RateLimitLayer::new(limiter.clone()).classify(classify);
            let layer =
                keys.iter().skip(1).fold(layer.key(keys[0]), |layer, key| layer.scope(*key));
            let inner = Strict::new(move |number: u64| async move {
                sleep(in_flight).await;
                Ok(number)
            });
            let mut service = layer.observe(|_: &u64| None).layer(inner);
            service.ready().await.unwrap().call(1).await.unwrap();
        }
        Kind::Capacity => {
            for key in keys {
                limiter.wait_for_capacity(key, &Cost::new()).await.unwrap();
            }
        }
    }
}

/// Runs a waiter to its end. Returns how long it took, if it was served.
async fn run(limiter: Limiter, waiter: Waiter, limit: Limit) -> Option<Duration> {
    sleep(Duration::from_millis(waiter.arrives)).await;
    let (clock, begin) = (limiter.clone(), limiter.now());
    let mut served = Box::pin(serve(limiter, waiter, limit));
    match waiter.end {
        End::Served => served.await,
        End::Dropped(after) => drop(timeout(Duration::from_millis(after), served).await),
        End::Forgotten(after) => {
            if timeout(Duration::from_millis(after), &mut served).await.is_err() {
                // Kept until the end of the test.
                sleep(Duration::from_secs(3_600)).await;
                drop(served);
                return None;
            }
        }
    }
    (waiter.end == End::Served).then(|| clock.now() - begin)
}

/// Returns how long all others take at most, and the waiter itself.
///
/// One that was forgotten while it was in flight keeps its place: it is as slow as the caller makes it.
fn longest_wait(waiters: &[Waiter], limit: Limit) -> Duration {
    let takes = match limit {
        Limit::Rate => S,
        Limit::Flight => S + Duration::from_millis(60),
    };
    takes * (waiters.len() as u32 + 1)
}

async fn all_polled_waiters_are_served(waiters: &[Waiter], limit: Limit) {
    let quota = match limit {
        Limit::Rate => Quota::new().rpm(60),
        Limit::Flight => Quota::new().concurrency(1),
    };
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("*", quota).build().unwrap();
    let used = match limit {
        Limit::Rate => 60,
        Limit::Flight => 1,
    };
    let begin =
        ["a", "b"].map(|key| limiter.try_acquire(key, &Cost::new().requests(used)).unwrap());
    let mut running = Vec::new();
    for &waiter in waiters {
        running.push((waiter, tokio::spawn(run(limiter.clone(), waiter, limit))));
    }
    sleep(S / 2).await;
    begin.into_iter().for_each(|permit| permit.settle(&Cost::new().requests(used)));
    let most = longest_wait(waiters, limit) + S;
    for (waiter, running) in running {
        if waiter.end == End::Served {
            let served = timeout(Duration::from_secs(60), running).await;
            let took = served.expect("a waiter that is polled is served").unwrap().unwrap();
            assert!(took <= most, "{waiter:?} took {took:?}, not {most:?}");
        }
    }
}

fn check(waiters: &[Waiter], limit: Limit) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(all_polled_waiters_are_served(waiters, limit));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(100_000, 1_000))
    })]

    /// Whoever is still polled is served within its wait and one second, whatever others do.
    #[test]
    fn forgotten_waiters_of_a_rate_delay_nobody(waiters in waiters()) {
        check(&waiters, Limit::Rate);
    }

    #[test]
    fn forgotten_waiters_of_a_flight_delay_nobody(waiters in waiters()) {
        // A service that was forgotten in flight would keep its place.
        let waiters: Vec<_> = waiters
            .into_iter()
            .map(|waiter| match waiter.end {
                End::Forgotten(after) => Waiter { end: End::Forgotten(after % 400), ..waiter },
                _ => waiter,
            })
            .filter(|waiter| waiter.end == End::Served || waiter.arrives < 90)
            .collect();
        check(&waiters, Limit::Flight);
    }
}

/// The report of a user: a request is the head, a service is forgotten behind it, and another one waits.
#[tokio::test(start_paused = true)]
async fn service_behind_forgotten_one_is_ready_in_time() {
    let limiter = limiter(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let begin = limiter.now();
    let request = tokio::spawn(limiter.acquire("k", &Cost::new()));
    settle_down().await;
    let mut forgotten = tokens(&limiter).key("k").layer(echo());
    assert!(!is_ready(&mut forgotten).await);
    let mut service = tokens(&limiter).key("k").layer(echo());
    let called = tokio::spawn(async move { service.ready().await.unwrap().call(1).await });
    drop(request.await.unwrap().unwrap());
    assert_eq!(limiter.now() - begin, S);
    called.await.unwrap().unwrap();
    assert_eq!(limiter.now() - begin, 2 * S);
    // The forgotten one still works.
    forgotten.ready().await.unwrap().call(1).await.unwrap();
    assert_eq!(limiter.now() - begin, 3 * S);
}

#[tokio::test(start_paused = true)]
async fn wait_for_capacity_beside_forgotten_service_ends_in_time() {
    let limiter = limiter(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let begin = limiter.now();
    let request = tokio::spawn(limiter.acquire("k", &Cost::new()));
    settle_down().await;
    let mut forgotten = tokens(&limiter).key("k").layer(echo());
    assert!(!is_ready(&mut forgotten).await);
    let waiting = limiter.wait_for_capacity("k", &Cost::new());
    let waiting = tokio::spawn(waiting);
    drop(request.await.unwrap().unwrap());
    waiting.await.unwrap().unwrap();
    assert_eq!(limiter.now() - begin, 2 * S);
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_is_passed_and_returns_to_its_place() {
    let limiter = limiter(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let begin = limiter.now();
    let mut forgotten = pin!(limiter.acquire("k", &Cost::new()));
    assert!(futures_util::poll!(&mut forgotten).is_pending());
    let others: Vec<_> = (0..4).map(|_| tokio::spawn(limiter.acquire("k", &Cost::new()))).collect();
    sleep(S + S / 2).await;
    let is_granted = |other: &tokio::task::JoinHandle<_>| other.is_finished();
    assert_eq!(others.iter().filter(|other| is_granted(other)).count(), 1);
    // It arrived before the others.
    forgotten.await.unwrap().settle(&Cost::new());
    assert_eq!(limiter.now() - begin, 2 * S);
    for other in others {
        other.await.unwrap().unwrap().settle(&Cost::new());
    }
    assert_eq!(limiter.now() - begin, 5 * S);
}

/// Returns a limiter whose limit is used up, and many requests that wait for it and are kept.
async fn with_many_forgotten() -> (Limiter, Vec<Pin<Box<Acquire>>>) {
    let limiter = limiter(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let mut forgotten: Vec<_> =
        (0..150).map(|_| Box::pin(limiter.acquire("k", &Cost::new()))).collect();
    for forgotten in &mut forgotten {
        assert!(futures_util::poll!(forgotten).is_pending());
    }
    (limiter, forgotten)
}

#[tokio::test(start_paused = true)]
async fn many_forgotten_requests_are_passed_in_one_step() {
    let (limiter, _forgotten) = with_many_forgotten().await;
    sleep(2 * S).await;
    let begin = limiter.now();
    limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new());
    let took = limiter.now() - begin;
    assert!(took <= 2 * S, "{took:?}");
}

/// The requests that are forgotten only after the next one waits.
#[tokio::test(start_paused = true)]
async fn requests_forgotten_behind_others_are_passed_in_time() {
    let (limiter, _forgotten) = with_many_forgotten().await;
    let begin = limiter.now();
    limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new());
    let took = limiter.now() - begin;
    assert!(took <= S + 2 * S, "{took:?}");
}

/// Counts the polls of a future.
async fn counted<T>(future: impl Future<Output = T>, polls: &Cell<usize>) -> T {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        polls.set(polls.get() + 1);
        future.as_mut().poll(cx)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_a_day_are_not_polled_meanwhile() {
    const DAY: Duration = Duration::from_secs(86_400);
    let limiter = builder().quota("k", Quota::new().rpd(300)).build().unwrap();
    let use_up = |count| limiter.try_acquire("k", &Cost::new().requests(count)).unwrap();
    use_up(300).settle(&Cost::new().requests(300));
    let polls = Cell::new(0);
    let acquire = || async {
        counted(limiter.acquire("k", &Cost::new()), &polls).await.unwrap().settle(&Cost::new());
    };
    let begin = limiter.now();
    join_all((0..300).map(|_| acquire())).await;
    assert!(limiter.now() - begin > DAY / 2 && polls.get() < 3_000, "{} polls", polls.get());
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_that_waits_for_a_day_is_passed_once_another_fits() {
    let limiter = builder().quota("k", Quota::new().rpd(300)).build().unwrap();
    let used = Cost::new().requests(300);
    limiter.try_acquire("k", &used).unwrap().settle(&used);
    let (mut forgotten, mut second) =
        (pin!(limiter.acquire("k", &used)), pin!(limiter.acquire("k", &used)));
    assert!(poll!(&mut forgotten).is_pending());
    assert!(timeout(Duration::from_secs(3_600), &mut second).await.is_err());
    limiter.quotas().set("k", &Quota::new().rpd(700)).unwrap();
    let begin = limiter.now();
    second.await.unwrap();
    assert!(limiter.now() - begin < S, "{:?}", limiter.now() - begin);
}

/// Returns a limiter whose requests of today are used up.
fn used_up(quota: Quota, max_waiting: usize) -> Limiter {
    let limiter = builder().quota("k", quota.rpd(300)).max_waiting(max_waiting).build().unwrap();
    let used = Cost::new().requests(300);
    limiter.try_acquire("k", &used).unwrap().settle(&used);
    limiter
}

#[tokio::test(start_paused = true)]
async fn capacity_is_awaited_by_one_that_was_not_polled_for_a_day() {
    let limiter = used_up(Quota::new().concurrency(10), 9);
    let permit = limiter.try_acquire("k", &Cost::new().requests(0)).unwrap();
    let mut capacity = pin!(limiter.wait_for_capacity("k", &Cost::new()));
    assert!(poll!(&mut capacity).is_pending());
    let _waits = tokio::spawn(limiter.acquire("k", &Cost::new()));
    sleep(S).await;
    assert!(poll!(&mut capacity).is_pending());
    sleep(60 * S).await;
    permit.settle(&Cost::new().requests(0));
    sleep(S).await;
    assert!(poll!(&mut capacity).is_pending());
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_does_not_starve_those_that_wait_briefly() {
    for attempt in [0, 1, 2] {
        let limiter = builder().quota("k", Quota::new().rpm(60)).max_waiting(1).build().unwrap();
        limiter
            .try_acquire("k", &Cost::new().requests(60))
            .unwrap()
            .settle(&Cost::new().requests(60));
        let mut forgotten = pin!(limiter.acquire("k", &Cost::new()));
        assert!(poll!(&mut forgotten).is_pending());
        sleep(120 * S).await;
        let mut granted = 0;
        for _ in 0..5 {
            let is_granted = match attempt {
                0 => limiter.try_acquire("k", &Cost::new()).is_ok(),
                1 => limiter.acquire("k", &Cost::new()).max_wait(S / 5).await.is_ok(),
                _ => limiter.acquire("k", &Cost::new()).await.is_ok(),
            };
            granted += usize::from(is_granted);
            sleep(S).await;
        }
        assert!(granted >= 2, "{attempt}: {granted}");
    }
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_gives_up_its_slot_also_for_a_day() {
    let limiter = used_up(Quota::new(), 2);
    let mut forgotten = pin!(limiter.acquire("k", &Cost::new()));
    assert!(poll!(&mut forgotten).is_pending());
    let _waits = tokio::spawn(limiter.acquire("k", &Cost::new()));
    sleep(60 * S).await;
    let wait = || timeout(S, limiter.acquire("k", &Cost::new()));
    assert!(matches!(wait().await, Ok(Err(AcquireError::QueueFull { .. }))));
    sleep(10 * S).await;
    assert!(wait().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn deadline_behind_requests_that_are_not_polled_is_judged_soon() {
    let a_minute = Quota::new().rpm(1).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("k", a_minute).build().unwrap();
    limiter.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new());
    let _waits: Vec<_> =
        (0..30).map(|_| tokio::spawn(limiter.acquire("k", &Cost::new()))).collect();
    sleep(10 * S).await;
    let begin = limiter.now();
    assert!(limiter.acquire("k", &Cost::new()).max_wait(600 * S).await.is_err());
    assert!(limiter.now() - begin < S, "{:?}", limiter.now() - begin);
    let in_time = limiter.acquire("k", &Cost::new()).max_wait(3_600 * S).await;
    assert!(in_time.is_ok());
}

/// Those that come to a queue are served although the one before them is found to be forgotten just then.
#[test]
fn waiter_that_comes_behind_forgotten_one_is_served_in_time() {
    let waiter = |kind, keys, arrives, end| Waiter { kind, keys, arrives, end };
    let request = |keys, arrives, end| waiter(Kind::Request, keys, arrives, end);
    let others = [request(0, 0, End::Served); 4];
    let of_b = [request(1, 767, End::Dropped(0)), request(1, 0, End::Forgotten(0))];
    for kind in [Kind::Request, Kind::Service, Kind::Capacity] {
        for keys in 1..4 {
            let last = [waiter(kind, keys, 4_620, End::Served)];
            check(&[&last, &of_b[..], &others].concat(), Limit::Rate);
        }
    }
}
