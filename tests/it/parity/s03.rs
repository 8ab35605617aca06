//! Available amounts, limits and requests in flight at any moment.

use std::time::Duration;

use paceline::quota::{Cost, Dimension, Quota, Window};

use super::rig::{buckets, manual, tokens};

#[test]
fn s03_stats_report_available_limit_window_and_in_flight() {
    let (limiter, clock) = manual(buckets(Quota::new().rpm(60).concurrency(8)));
    let permits: Vec<_> = (0..3).map(|_| limiter.try_acquire("k", &Cost::new()).unwrap()).collect();
    let stats = limiter.stats("k");
    let [rate, in_flight] = &stats.limits[..] else { panic!("{stats:?}") };
    assert_eq!((rate.available, rate.limit, rate.window), (57, 60, Window::MINUTE));
    assert_eq!((&in_flight.dimension, in_flight.held), (&Dimension::Concurrency, 3));
    assert_eq!((in_flight.available, in_flight.limit), (5, 8));

    drop(permits);
    clock.advance(Duration::from_secs(2));
    let stats = limiter.stats("k");
    assert_eq!((stats.limits[0].available, stats.limits[1].held), (59, 0));
}

#[test]
fn s03_held_and_used_tokens_are_separate() {
    let (limiter, _) = manual(Quota::new().tpm(1_000));
    let permit = limiter.try_acquire("k", &tokens(300)).unwrap();
    let amounts = || {
        let stats = limiter.stats("k");
        (stats.limits[0].available, stats.limits[0].held, stats.limits[0].used)
    };
    assert_eq!(amounts(), (700, 300, 0));
    permit.settle(&tokens(250));
    assert_eq!(amounts(), (750, 0, 250));
}

#[test]
fn s03_unconfigured_resource_has_no_stats() {
    let (limiter, _) = manual(Quota::new().rpm(60));
    assert!(limiter.stats("other").limits.is_empty());
}
