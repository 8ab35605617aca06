//! A day that starts at the first request, and one that slides.

use std::time::Duration;

use tollgate::limiter::{Code, Limiter};
use tollgate::quota::{Algorithm, Cost, Quota};

use super::rig::{S, admitted, manual, used};

const HOUR: Duration = Duration::from_secs(3_600);
const NANO: Duration = Duration::from_nanos(1);

fn hundred(algorithm: Algorithm) -> Quota {
    Quota::new().rpd(100).with_algorithm(algorithm)
}

fn send(limiter: &Limiter, tries: usize) -> usize {
    admitted(limiter, "k", &Cost::new(), tries)
}

#[test]
fn g07_a_fixed_day_starts_at_the_first_request_and_resets_by_itself() {
    let (limiter, clock) = manual(hundred(Algorithm::FixedWindow));
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
fn g07_the_next_day_starts_with_the_next_request_and_not_on_a_grid() {
    let (limiter, clock) = manual(hundred(Algorithm::FixedWindow));
    assert_eq!(send(&limiter, 100), 100);
    clock.advance(30 * HOUR);
    assert_eq!(send(&limiter, 60), 60);
    // A grid of the first request's would start again at 48 h.
    clock.advance(20 * HOUR);
    assert_eq!(send(&limiter, 1_000), 40);
    clock.advance(4 * HOUR);
    assert_eq!(send(&limiter, 1_000), 100);
}

/// One request, and 99 just before the first day ends: what can be sent just after it, and within
/// an hour's time of the 99?
fn across_the_reset(algorithm: Algorithm) -> usize {
    let (limiter, clock) = manual(hundred(algorithm));
    assert_eq!(send(&limiter, 1), 1);
    clock.advance(24 * HOUR - NANO);
    assert_eq!(send(&limiter, 1_000), 99);
    clock.advance(NANO);
    send(&limiter, 1_000)
}

#[test]
fn g07_a_sliding_day_lets_no_second_hundred_through_across_the_reset() {
    assert_eq!(across_the_reset(Algorithm::FixedWindow), 100);
    assert_eq!(across_the_reset(Algorithm::SlidingWindow), 1);
}

#[test]
fn g07_no_24_hours_of_a_sliding_day_see_more_than_the_limit_and_none_of_it_is_lost() {
    let (limiter, clock) = manual(hundred(Algorithm::SlidingWindow));
    let mut sent = Vec::new();
    for step in 0..240_u32 {
        let count = send(&limiter, 1 + (step as usize * 7) % 23);
        sent.extend(std::iter::repeat_n(limiter.now(), count));
        clock.advance(HOUR);
    }
    let day = 86_400 * S;
    assert!(sent.windows(101).all(|pair| pair[100] - pair[0] >= day));
    // Ten days with more demand than there is quota: a thousand.
    assert_eq!(sent.len(), 1_000);
}

#[test]
fn g07_without_a_profile_or_a_word_a_day_is_the_safe_one() {
    let (limiter, clock) = manual(Quota::new().rpd(100));
    assert_eq!(send(&limiter, 1), 1);
    clock.advance(24 * HOUR - NANO);
    assert_eq!(send(&limiter, 1_000), 99);
    clock.advance(NANO);
    assert_eq!(send(&limiter, 1_000), 1);
}
