//! The property of services and requests that are no longer polled: whoever is still polled is served.

use paceline::limiter::AcquireError;
use paceline::middleware::RateLimitError;
use paceline_testing::full::full_or;
use proptest::prelude::*;
use tokio::time::{sleep, timeout};

use super::*;
use crate::block_on_paused;

/// A waiter of one or two keys, and its end.
#[derive(Debug, Clone, Copy)]
struct Waiter {
    kind: Kind,
    /// The index of its keys in [`KEYS`].
    keys: usize,
    /// Milliseconds.
    arrives: u64,
    end: End,
    /// The longest wait of a request, in milliseconds.
    max_wait: Option<u64>,
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

impl Limit {
    /// Returns how long a request is in flight.
    fn in_flight(self) -> Duration {
        match self {
            Limit::Rate => Duration::ZERO,
            Limit::Flight => S,
        }
    }
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
    let max_wait = proptest::option::of(0..8_000_u64);
    let waiter = (kind, keys, 0..5_000_u64, end, max_wait);
    let waiter = waiter.prop_map(|(kind, keys, arrives, end, max_wait)| {
        let max_wait = max_wait.filter(|_| kind == Kind::Request);
        Waiter { kind, keys, arrives, end, max_wait }
    });
    proptest::collection::vec(waiter, 1..12)
}

/// The requests that may wait for a key.
fn max_waiting() -> impl Strategy<Value = usize> {
    prop_oneof![Just(usize::MAX), 1..3_usize]
}

/// Serves a waiter. Under [`Limit::Flight`], it is in flight for a second. A request may be refused, since it would wait
/// for too long, or too many wait; so may the call of a service, since its other key may have become short.
async fn serve(limiter: Limiter, waiter: Waiter, limit: Limit, max_waiting: usize) {
    let keys = KEYS[waiter.keys];
    let (in_flight, may_be_full) = (limit.in_flight(), max_waiting != usize::MAX);
    match waiter.kind {
        Kind::Request => {
            let acquire = limiter.acquire_all(keys, &Cost::new());
            let acquire = waiter
                .max_wait
                .into_iter()
                .fold(acquire, |acquire, most| acquire.max_wait(Duration::from_millis(most)));
            let permit = match acquire.await {
                Ok(permit) => permit,
                Err(AcquireError::QueueFull { .. }) => return assert!(may_be_full),
                Err(error) => return assert!(waiter.max_wait.is_some(), "{error}"),
            };
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
            match service.ready().await.unwrap().call(1).await {
                Ok(_) => {}
                Err(RateLimitError::Limited(AcquireError::QueueFull { .. })) => {
                    assert!(may_be_full);
                }
                Err(error) => panic!("{error}"),
            }
        }
        Kind::Capacity => {
            for key in keys {
                limiter.wait_for_capacity(key, &Cost::new()).await.unwrap();
            }
        }
    }
}

/// Runs a waiter to its end. Returns how long it took, if it was served.
async fn run(
    limiter: Limiter,
    waiter: Waiter,
    limit: Limit,
    max_waiting: usize,
) -> Option<Duration> {
    sleep(Duration::from_millis(waiter.arrives)).await;
    let (clock, begin) = (limiter.clone(), limiter.now());
    let mut served = Box::pin(serve(limiter, waiter, limit, max_waiting));
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

/// Returns how long all others that may be served take at most, and the waiter itself. One that is forgotten or dropped
/// before the first can be served takes nothing.
///
/// One that was forgotten while it was in flight keeps its place: it is as slow as the caller makes it.
fn longest_wait(waiters: &[Waiter], limit: Limit) -> Duration {
    let (takes, first) = match limit {
        Limit::Rate => (S, 1_000),
        Limit::Flight => (S + Duration::from_millis(60), 500),
    };
    let may_be_served = |waiter: &&Waiter| match waiter.end {
        End::Served => true,
        End::Forgotten(after) | End::Dropped(after) => waiter.arrives + after >= first,
    };
    takes * (waiters.iter().filter(may_be_served).count() as u32 + 1)
}

async fn all_polled_waiters_are_served(waiters: &[Waiter], limit: Limit, max_waiting: usize) {
    let quota = match limit {
        Limit::Rate => Quota::new().rpm(60),
        Limit::Flight => Quota::new().concurrency(1),
    };
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("*", quota).max_waiting(max_waiting).build().unwrap();
    let used = match limit {
        Limit::Rate => 60,
        Limit::Flight => 1,
    };
    let begin =
        ["a", "b"].map(|key| limiter.try_acquire(key, &Cost::new().requests(used)).unwrap());
    let mut running = Vec::new();
    for &waiter in waiters {
        running.push((waiter, tokio::spawn(run(limiter.clone(), waiter, limit, max_waiting))));
    }
    sleep(S / 2).await;
    begin.into_iter().for_each(|permit| permit.settle(&Cost::new().requests(used)));
    let most = longest_wait(waiters, limit) + S;
    for (waiter, running) in running {
        if waiter.end == End::Served {
            let served = timeout(Duration::from_secs(60), running).await;
            let took = served.expect("a waiter that is polled is served").unwrap().unwrap();
            let most = waiter.max_wait.map_or(most, |wait| {
                most.min(Duration::from_millis(wait) + limit.in_flight() + S / 10)
            });
            assert!(took <= most, "{waiter:?} took {took:?}, not {most:?}");
        }
    }
}

fn check(waiters: &[Waiter], limit: Limit, max_waiting: usize) {
    block_on_paused(all_polled_waiters_are_served(waiters, limit, max_waiting));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(100_000, 1_000))
    })]

    /// Whoever is still polled is served within its wait and one second, whatever others do.
    #[test]
    fn forgotten_waiters_of_a_rate_delay_nobody(
        waiters in waiters(),
        max_waiting in max_waiting(),
    ) {
        check(&waiters, Limit::Rate, max_waiting);
    }

    #[test]
    fn forgotten_waiters_of_a_flight_delay_nobody(
        waiters in waiters(),
        max_waiting in max_waiting(),
    ) {
        // A service that was forgotten in flight would keep its place.
        let waiters: Vec<_> = waiters
            .into_iter()
            .map(|waiter| match waiter.end {
                End::Forgotten(after) => Waiter { end: End::Forgotten(after % 400), ..waiter },
                _ => waiter,
            })
            .filter(|waiter| waiter.end == End::Served || waiter.arrives < 90)
            .collect();
        check(&waiters, Limit::Flight, max_waiting);
    }
}

/// A waiter behind a crowd that nobody polls any more is served within its wait and one second.
async fn waiter_behind_crowd_is_served(crowd: &[Waiter], waiter: Waiter) {
    let quota = Quota::new().rpm(60).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("*", quota).max_waiting(usize::MAX).build().unwrap();
    limiter.try_acquire("a", &Cost::new().requests(60)).unwrap().settle(&Cost::new().requests(60));
    for &waiter in crowd {
        tokio::spawn(run(limiter.clone(), waiter, Limit::Rate, usize::MAX));
    }
    let took =
        timeout(Duration::from_secs(60), run(limiter, waiter, Limit::Rate, usize::MAX)).await;
    let took = took.expect("a waiter that is polled is served").expect("it is served");
    let most =
        S.saturating_sub(Duration::from_millis(waiter.arrives)) + S + Duration::from_millis(10);
    assert!(took <= most, "{waiter:?} behind {} took {took:?}, not {most:?}", crowd.len());
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(1_000, 20))
    })]

    #[test]
    fn crowd_of_forgotten_waiters_delays_nobody(
        crowd in proptest::collection::vec((0..100_u64, 0..800_u64), 1..1_000),
        kinds in [0..3_usize, 0..3_usize],
        arrives in 0..3_000_u64,
    ) {
        let [others, own] = kinds.map(|kind| [Kind::Request, Kind::Service, Kind::Capacity][kind]);
        let waiter = |kind, arrives, end| Waiter { kind, keys: 0, arrives, end, max_wait: None };
        let crowd: Vec<_> = crowd
            .into_iter()
            .map(|(arrives, after)| waiter(others, arrives, End::Forgotten(after)))
            .collect();
        block_on_paused(waiter_behind_crowd_is_served(&crowd, waiter(own, arrives, End::Served)));
    }
}

/// Those that come to a queue are served although the one before them is found to be forgotten just then.
#[test]
fn waiter_that_comes_behind_forgotten_one_is_served_in_time() {
    let waiter = |kind, keys, arrives, end| Waiter { kind, keys, arrives, end, max_wait: None };
    let request = |keys, arrives, end| waiter(Kind::Request, keys, arrives, end);
    let others = [request(0, 0, End::Served); 4];
    let of_b = [request(1, 767, End::Dropped(0)), request(1, 0, End::Forgotten(0))];
    for kind in [Kind::Request, Kind::Service, Kind::Capacity] {
        for keys in 1..4 {
            let last = [waiter(kind, keys, 4_620, End::Served)];
            check(&[&last, &of_b[..], &others].concat(), Limit::Rate, usize::MAX);
        }
    }
}
