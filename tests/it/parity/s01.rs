//! Acquire, try to acquire, release: rate and concurrency are separate.

use std::time::Duration;

use paceline::limiter::Code;
use paceline::quota::{Algorithm, Cost, Dimension, Quota};

use super::rig::{admitted, held, limit, manual, paused, seconds, settle_down, used, waiter};

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn s01_try_acquire_grants_or_refuses_without_waiting() {
    let (limiter, _) = manual(Quota::new().rpm(2));
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    assert_eq!(limiter.try_acquire("k", &Cost::new()).unwrap_err().code, Code::RpmExceeded);
}

#[tokio::test(start_paused = true)]
async fn s01_acquire_waits_and_cancelled_wait_is_not_charged() {
    let limiter = paused(Quota::new().rpm(1));
    let begin = limiter.now();
    drop(limiter.acquire("k", &Cost::new()).await.unwrap());
    let cancelled = waiter(&limiter, "k", &Cost::new());
    let next = waiter(&limiter, "k", &Cost::new());
    cancelled.abort();
    settle_down().await;
    assert_eq!(limiter.stats("k").waiting, 1);
    next.await.unwrap().unwrap();
    assert_eq!(seconds(&limiter, begin), 60);
    assert_eq!(used(&limiter, "k"), [1]);
}

#[test]
fn s01_limit_of_five_per_hour_admits_five_of_ten_thousand() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        let hourly = Quota::new().limit(limit(Dimension::Requests, 5, HOUR));
        let (limiter, clock) = manual(hourly.concurrency(3).with_algorithm(algorithm));
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 10_000), 5, "{algorithm:?}");
        let settled = (0..100).filter_map(|_| limiter.try_acquire("k", &Cost::new()).ok());
        assert_eq!(settled.map(|permit| permit.settle(&Cost::new())).count(), 0);
        clock.advance(HOUR);
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 10_000), 5, "{algorithm:?}");
    }
}

#[test]
fn s01_permit_end_frees_concurrency_and_keeps_charge() {
    let (limiter, _) = manual(Quota::new().rpm(100).concurrency(2));
    let first = limiter.try_acquire("k", &Cost::new()).unwrap();
    let second = limiter.try_acquire("k", &Cost::new()).unwrap();
    let refused = limiter.try_acquire("k", &Cost::new()).unwrap_err();
    assert_eq!(refused.code, Code::ConcurrencyExceeded);
    assert_eq!((used(&limiter, "k")[0], held(&limiter, "k")[1]), (2, 2));
    drop(first);
    second.settle(&Cost::new());
    assert_eq!((used(&limiter, "k")[0], held(&limiter, "k")[1]), (2, 0));
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
}

#[test]
fn s01_release_of_unsent_request_refunds_rate() {
    let (limiter, _) = manual(Quota::new().rpm(1).concurrency(1));
    for _ in 0..100 {
        limiter.try_acquire("k", &Cost::new()).unwrap().release();
    }
    assert_eq!((used(&limiter, "k")[0], held(&limiter, "k")[1]), (0, 0));
}
