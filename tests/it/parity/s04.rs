//! Refill at limit / window, computed on demand.

use std::time::Duration;

use paceline::quota::{Cost, Dimension, Limit, Quota};

use super::rig::{admitted, buckets, limit, manual};

const SECOND: Duration = Duration::from_secs(1);

/// Empties a full bucket, and returns the number of requests granted in the next ten seconds to a caller
/// that takes all capacity every `poll`.
fn granted_by_polling(limit: Limit, poll: Duration) -> u128 {
    let (limiter, clock) = manual(buckets(Quota::new().limit(limit)));
    // Bounded, so that a bucket that never empties fails the test instead of blocking it.
    let take_all =
        || (0..100_000).take_while(|_| limiter.try_acquire("k", &Cost::new()).is_ok()).count();
    assert_eq!(take_all() as u64, limiter.stats("k").limits[0].limit);
    let polls = 10 * SECOND.as_nanos() / poll.as_nanos();
    (0..polls).map(|_| clock.advance(poll)).map(|()| take_all() as u128).sum()
}

#[test]
fn s04_refill_keeps_fractions_for_any_poll_interval() {
    let requests = |amount, window| limit(Dimension::Requests, amount, window);
    assert_eq!(granted_by_polling(requests(39, SECOND), Duration::from_millis(50)), 390);
    for rate in [1, 7, 39, 333] {
        for poll in [1, 7, 50, 333, 999].map(Duration::from_millis) {
            let (limit, time) = (requests(60 * rate, 60 * SECOND), 10 * SECOND.as_nanos());
            let polled_for = time - time % poll.as_nanos();
            let exact = u128::from(rate) * polled_for / SECOND.as_nanos();
            assert_eq!(granted_by_polling(limit, poll), exact, "{rate}/s polled every {poll:?}");
        }
    }
}

#[test]
fn s04_each_unit_is_refilled_at_exact_nanosecond() {
    let quota = Quota::new().limit(limit(Dimension::Requests, 39, SECOND));
    let (limiter, clock) = manual(buckets(quota));
    assert_eq!(admitted(&limiter, "k", &Cost::new(), 100), 39);
    let begin = limiter.now();
    for unit in 1..=390_u64 {
        clock.advance_to(begin + Duration::from_nanos((unit * 1_000_000_000).div_ceil(39) - 1));
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 3), 0, "unit {unit}");
        clock.advance(Duration::from_nanos(1));
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 3), 1, "unit {unit}");
    }
}

#[test]
fn s04_idle_bucket_fills_up_to_limit() {
    let (limiter, clock) = manual(buckets(Quota::new().rpm(60)));
    assert_eq!(admitted(&limiter, "k", &Cost::new(), 100), 60);
    clock.advance(Duration::from_secs(86_400));
    assert_eq!(limiter.stats("k").limits[0].available, 60);
    assert_eq!(admitted(&limiter, "k", &Cost::new(), 100), 60);
}
