//! The status of each bucket: the count and the time until its reset.

use std::time::Duration;

use paceline::limiter::{Limiter, ManualClock};
use paceline::quota::{Algorithm, Cost, Quota};

use super::rig::{builder, limit, manual, tokens};

/// Returns the count and the seconds to the reset of each limit.
fn status(limiter: &Limiter) -> Vec<(u64, u64)> {
    let now = limiter.now();
    let limits = limiter.stats("k").limits;
    limits.iter().map(|limit| (limit.used, (limit.fresh_at - now).as_secs())).collect()
}

#[test]
fn f07_status_has_count_and_reset_for_each_algorithm() {
    // Three of ten were used, now or 20 s ago; a bucket of 10 per minute refills them in 18 s.
    let cases = [
        (Algorithm::SlidingWindow, [(3, 60), (3, 40)]),
        (Algorithm::FixedWindow, [(3, 60), (3, 40)]),
        (Algorithm::TokenBucket, [(3, 18), (0, 0)]),
    ];
    for (algorithm, [immediately, after_20_s]) in cases {
        let (limiter, clock) = manual(Quota::new().rpm(10).rpd(100).with_algorithm(algorithm));
        (0..3).for_each(|_| drop(limiter.try_acquire("k", &Cost::new()).unwrap()));
        assert_eq!(status(&limiter)[0], immediately, "{algorithm:?}");
        clock.advance(Duration::from_secs(20));
        assert_eq!(status(&limiter)[0], after_20_s, "{algorithm:?}");
        assert_eq!(status(&limiter)[1].0, 3, "{algorithm:?}");
    }
}

#[test]
fn f07_count_becomes_zero_exactly_at_reset() {
    for algorithm in [Algorithm::SlidingWindow, Algorithm::FixedWindow, Algorithm::TokenBucket] {
        let (limiter, clock) = manual(Quota::new().rpm(7).with_algorithm(algorithm));
        (0..5).for_each(|_| drop(limiter.try_acquire("k", &Cost::new()).unwrap()));
        clock.advance_to(limiter.stats("k").limits[0].fresh_at - Duration::from_nanos(1));
        assert_ne!(status(&limiter)[0].0, 0, "{algorithm:?}");
        clock.advance(Duration::from_nanos(1));
        assert_eq!(status(&limiter)[0], (0, 0), "{algorithm:?}");
    }
}

#[test]
fn f07_limits_given_per_call_have_a_status() {
    let limiter = builder().clock(ManualClock::new()).build().unwrap();
    assert!(limiter.stats("k").limits.is_empty());
    assert!(limiter.state().keys().is_empty());
    let window = Duration::from_millis(90_000);
    let limits = Quota::new().limit(limit(paceline::quota::Dimension::Tokens, 100, window));
    let acquire = limiter.acquire("k", &tokens(40)).limits(&limits);
    acquire.try_now().unwrap().settle(&tokens(40));
    for _ in 0..3 {
        assert_eq!(status(&limiter), [(40, 90)]);
        assert_eq!(limiter.stats("k").limits[0].available, 60);
    }
}
