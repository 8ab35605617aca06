//! Buckets with any name and window.

use std::time::Duration;

use paceline::limiter::{Limiter, ManualClock};
use paceline::quota::{Cost, Dimension, Quota, Window};

use super::rig::{builder, limit, manual};

const MS: Duration = Duration::from_millis(1);

fn refused(limiter: &Limiter, cost: &Cost) -> (String, Duration) {
    let refused = limiter.try_acquire("k", cost).unwrap_err();
    (refused.dimension.clone().unwrap().to_string(), refused.retry_after().unwrap())
}

#[test]
fn f05_buckets_have_custom_names_and_windows() {
    let quota = Quota::new()
        .limit(limit(Dimension::custom("gpu_seconds"), 3, 250 * MS))
        .limit(limit(Dimension::custom("images"), 5, 1_500 * MS));
    let (limiter, clock) = manual(quota);
    let both = Cost::new().custom("gpu_seconds", 3).custom("images", 4);
    limiter.try_acquire("k", &both).unwrap().settle(&both);
    let (gpu, images) = (Cost::new().custom("gpu_seconds", 1), Cost::new().custom("images", 2));
    assert_eq!(refused(&limiter, &gpu), ("gpu_seconds".to_owned(), 250 * MS));
    assert_eq!(refused(&limiter, &images), ("images".to_owned(), 1_500 * MS));
    clock.advance(250 * MS);
    limiter.try_acquire("k", &gpu).unwrap().settle(&gpu);
    assert_eq!(refused(&limiter, &images), ("images".to_owned(), 1_250 * MS));
    clock.advance(1_250 * MS);
    assert!(limiter.try_acquire("k", &images).is_ok());
}

#[test]
fn f05_custom_buckets_can_be_given_per_call() {
    let limiter = builder().clock(ManualClock::new()).build().unwrap();
    let limits = Quota::new().limit(limit(Dimension::custom("pages"), 40, 77 * MS));
    let cost = Cost::new().custom("pages", 40);
    assert!(limiter.acquire("k", &cost).limits(&limits).try_now().is_ok());
    let refused = limiter.acquire("k", &cost).limits(&limits).try_now().unwrap_err();
    assert_eq!(refused.dimension, Some(Dimension::custom("pages")));
}

#[test]
fn f05_dimension_may_have_several_windows() {
    let requests = |amount, window| limit(Dimension::Requests, amount, window);
    let (limiter, clock) =
        manual(Quota::new().limit(requests(2, 10 * MS)).limit(requests(3, 1_000 * MS)));
    let two = Cost::new().requests(2);
    limiter.try_acquire("k", &two).unwrap().settle(&two);
    assert_eq!(refused(&limiter, &Cost::new()).1, 10 * MS);
    clock.advance(10 * MS);
    limiter.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new());
    assert_eq!(refused(&limiter, &Cost::new()).1, 990 * MS);
}

#[test]
fn f05_windows_are_limited_to_a_millisecond_and_366_days() {
    let days = |days: u64| Duration::from_secs(86_400 * days);
    for window in [MS, days(30), days(366)] {
        let (limiter, clock) = manual(Quota::new().limit(limit(Dimension::Requests, 1, window)));
        limiter.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new());
        clock.advance(window - Duration::from_nanos(1));
        assert_eq!(refused(&limiter, &Cost::new()).1, Duration::from_nanos(1));
        clock.advance(Duration::from_nanos(1));
        assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    }
    for window in [Duration::ZERO, MS - Duration::from_nanos(1), days(366) + MS, Duration::MAX] {
        assert!(Window::new(window).is_err(), "{window:?}");
    }
}
