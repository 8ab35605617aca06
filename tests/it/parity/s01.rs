//! Acquire, try to acquire, release: rate and in-flight are two things.

use std::time::Duration;

use tollgate::limiter::Code;
use tollgate::quota::{Algorithm, Cost, Dimension, Quota};

use super::rig::{admitted, held, limit, manual, paused, seconds, settle_down, used, waiter};

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn s01_trying_takes_one_or_says_no_without_waiting() {
    let (limiter, _) = manual(Quota::new().rpm(2));
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    assert_eq!(limiter.try_acquire("k", &Cost::new()).unwrap_err().code, Code::RpmExceeded);
}

#[tokio::test(start_paused = true)]
async fn s01_acquiring_blocks_until_there_is_one_and_a_cancelled_wait_takes_none() {
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
fn s01_ten_thousand_that_each_end_at_once_get_five_of_five_an_hour() {
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
fn s01_the_end_of_a_permit_frees_its_place_in_flight_and_keeps_its_charge() {
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
fn s01_only_a_request_that_never_left_gives_its_rate_back() {
    let (limiter, _) = manual(Quota::new().rpm(1).concurrency(1));
    for _ in 0..100 {
        limiter.try_acquire("k", &Cost::new()).unwrap().release();
    }
    assert_eq!((used(&limiter, "k")[0], held(&limiter, "k")[1]), (0, 0));
}
