//! Daily limits: a fixed day that starts at the first request, and a sliding day.

use std::time::Duration;

use paceline::limiter::{Code, Limiter};
use paceline::quota::{Algorithm, Cost, Quota};

use super::rig::{S, admitted, manual, used};

const HOUR: Duration = Duration::from_secs(3_600);
const NANO: Duration = Duration::from_nanos(1);

fn quota_of_100(algorithm: Algorithm) -> Quota {
    Quota::new().rpd(100).with_algorithm(algorithm)
}

fn send(limiter: &Limiter, tries: usize) -> usize {
    admitted(limiter, "k", &Cost::new(), tries)
}

#[test]
fn g07_fixed_day_starts_at_first_request_and_resets() {
    let (limiter, clock) = manual(quota_of_100(Algorithm::FixedWindow));
    clock.advance(5 * HOUR);
    let first = limiter.now();
    assert_eq!(send(&limiter, 1), 1);
    clock.advance(20 * HOUR);
    assert_eq!(send(&limiter, 1_000), 99);
    let refused = limiter.try_acquire("k", &Cost::new()).unwrap_err();
    assert_eq!((refused.code, refused.retry_after()), (Code::RpdExceeded, Some(4 * HOUR)));
    assert_eq!(limiter.stats("k").limits[0].fresh_at, first + 86_400 * S);
    clock.advance(4 * HOUR - NANO);
    assert_eq!(send(&limiter, 1_000), 0);
    clock.advance(NANO);
    assert_eq!((used(&limiter, "k"), send(&limiter, 1_000)), (vec![0], 100));
}

#[test]
fn g07_next_fixed_day_starts_with_next_request() {
    let (limiter, clock) = manual(quota_of_100(Algorithm::FixedWindow));
    assert_eq!(send(&limiter, 100), 100);
    clock.advance(30 * HOUR);
    assert_eq!(send(&limiter, 60), 60);
    // A grid from the first request would restart at 48 h.
    clock.advance(20 * HOUR);
    assert_eq!(send(&limiter, 1_000), 40);
    clock.advance(4 * HOUR);
    assert_eq!(send(&limiter, 1_000), 100);
}

/// Sends one request, and 99 just before the first day ends. Returns the number of requests that are
/// admitted just after its end.
fn admitted_after_first_day(algorithm: Algorithm) -> usize {
    let (limiter, clock) = manual(quota_of_100(algorithm));
    assert_eq!(send(&limiter, 1), 1);
    clock.advance(24 * HOUR - NANO);
    assert_eq!(send(&limiter, 1_000), 99);
    clock.advance(NANO);
    send(&limiter, 1_000)
}

#[test]
fn g07_sliding_day_prevents_double_quota_across_reset() {
    assert_eq!(admitted_after_first_day(Algorithm::FixedWindow), 100);
    assert_eq!(admitted_after_first_day(Algorithm::SlidingWindow), 1);
}

#[test]
fn g07_sliding_day_grants_exactly_the_limit_per_24_hours() {
    let (limiter, clock) = manual(quota_of_100(Algorithm::SlidingWindow));
    let mut sent = Vec::new();
    for step in 0..240_u32 {
        let count = send(&limiter, 1 + (step as usize * 7) % 23);
        sent.extend(std::iter::repeat_n(limiter.now(), count));
        clock.advance(HOUR);
    }
    let day = 86_400 * S;
    assert!(sent.windows(101).all(|sent| sent[100] - sent[0] >= day));
    // Ten days with more demand than quota: a thousand requests.
    assert_eq!(sent.len(), 1_000);
}

#[test]
fn g07_day_without_profile_or_algorithm_is_sliding() {
    let (limiter, clock) = manual(Quota::new().rpd(100));
    assert_eq!(send(&limiter, 1), 1);
    clock.advance(24 * HOUR - NANO);
    assert_eq!(send(&limiter, 1_000), 99);
    clock.advance(NANO);
    assert_eq!(send(&limiter, 1_000), 1);
}
