//! Saturating sums, times in the future, and clocks set back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use paceline::Timestamp;
use paceline::engine::Saved;
use paceline::limiter::{BucketSnapshot, Clock, Code, KeySnapshot, Limiter, ManualClock, Sleep};
use paceline::quota::{Algorithm, Cost, Dimension, Quota, Usage, Window};

use super::rig::{S, admitted, builder, manual, tokens};

const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];

#[test]
fn g19_sums_saturate_without_overflow() {
    for algorithm in ALGORITHMS {
        let (limiter, clock) = manual(Quota::new().tpm(100).with_algorithm(algorithm));
        let permit = limiter.try_acquire("k", &tokens(1)).unwrap();
        for _ in 0..3 {
            limiter.record("k", &Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() });
            assert!(limiter.stats("k").limits[0].used > 100, "{algorithm:?}");
            assert_eq!(limiter.stats("k").limits[0].available, 0, "{algorithm:?}");
        }
        permit.settle(&tokens(u64::MAX));
        clock.advance(Duration::from_secs(59));
        assert_eq!(limiter.decide("k", &tokens(1)).code, Code::TpmExceeded, "{algorithm:?}");
        let huge = limiter.decide("k", &Cost::new().tokens(u64::MAX).requests(u64::MAX));
        assert_eq!(huge.code, Code::ExceedsCapacity, "{algorithm:?}");
        assert_eq!(Usage { input: u64::MAX, output: 1, ..Usage::default() }.total(), u64::MAX);
    }
}

#[test]
fn g19_limit_of_u64_max_is_exhausted_and_refilled() {
    for algorithm in ALGORITHMS {
        let (limiter, clock) = manual(Quota::new().tpm(u64::MAX).with_algorithm(algorithm));
        let all = tokens(u64::MAX);
        limiter.try_acquire("k", &all).unwrap().settle(&all);
        assert!(limiter.try_acquire("k", &tokens(1)).is_err(), "{algorithm:?}");
        // The rate of a bucket is rounded down if it needs more than 32 bits.
        let fresh_at = limiter.stats("k").limits[0].fresh_at;
        assert!((60..75).contains(&((fresh_at - limiter.now()).as_secs())), "{algorithm:?}");
        clock.advance_to(fresh_at);
        assert!(limiter.try_acquire("k", &all).is_ok(), "{algorithm:?}");
    }
}

#[test]
fn g19_saved_times_in_the_future_count_as_now() {
    for algorithm in ALGORITHMS {
        let (limiter, clock) = manual(Quota::new().rpm(3).with_algorithm(algorithm));
        let now = limiter.now();
        let taken = [now + S, now + 400 * 86_400 * S, Timestamp::MAX].map(|at| (at, 1)).to_vec();
        let saved = Saved { taken, held: 0 };
        let bucket = BucketSnapshot::new(Dimension::Requests, Window::MINUTE, saved);
        limiter.state().absorb(&[KeySnapshot::new("k", vec![bucket])]);
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 9), 0, "{algorithm:?}");
        clock.advance(Duration::from_secs(60));
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 9), 3, "{algorithm:?}");
    }
}

/// A clock that can be set to any time.
#[derive(Debug, Clone)]
struct SettableClock(Arc<AtomicU64>);

impl SettableClock {
    fn set(&self, time: Timestamp) {
        self.0.store(time.as_nanos(), Ordering::Relaxed);
    }
}

impl Clock for SettableClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, _: Timestamp) -> Sleep {
        Box::pin(std::future::pending())
    }
}

fn with_settable_clock(quota: Quota) -> (Limiter, SettableClock) {
    let clock = SettableClock(Arc::new(ManualClock::START.as_nanos().into()));
    (builder().quota("k", quota).clock(clock.clone()).build().unwrap(), clock)
}

#[test]
fn g19_clock_set_back_neither_blocks_key_nor_refunds() {
    for algorithm in ALGORITHMS {
        let (limiter, clock) = with_settable_clock(Quota::new().rpm(5).with_algorithm(algorithm));
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 9), 5);
        let earlier = ManualClock::START - 3_000 * 86_400 * S;
        clock.set(earlier);
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 9), 0, "{algorithm:?}");
        clock.set(earlier + 60 * S);
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 9), 5, "{algorithm:?}");
    }
}

#[test]
fn g19_clock_at_extreme_times_recovers() {
    for algorithm in ALGORITHMS {
        let (limiter, clock) = with_settable_clock(Quota::new().rpm(5).with_algorithm(algorithm));
        let (first, last) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        let small = Duration::from_nanos(1);
        for time in [first, last - small, last, first + small, ManualClock::START] {
            clock.set(time);
            admitted(&limiter, "k", &Cost::new(), 9);
            let _ = (limiter.stats("k"), limiter.state().snapshot(), limiter.state().prune());
        }
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 9), 0, "{algorithm:?}");
        clock.set(ManualClock::START + 60 * S);
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 9), 5, "{algorithm:?}");
    }
}
