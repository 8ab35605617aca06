//! Limits are set, changed and removed while the limiter runs.

use std::time::Duration;

use paceline::limiter::{AcquireError, Code, Limiter, ManualClock, TokioClock, UnknownKey};
use paceline::quota::{Algorithm, Cost, Quota};

use super::rig::{admitted, buckets, builder, manual, seconds, settle_down, waiter};

fn available(limiter: &Limiter) -> u64 {
    limiter.stats("k").limits[0].available
}

#[test]
fn s02_new_resource_starts_full() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        let refuse = builder().unknown_key(UnknownKey::Refuse).clock(ManualClock::new());
        let limiter = refuse.build().unwrap();
        limiter.quotas().set("k", &Quota::new().rpm(60).with_algorithm(algorithm)).unwrap();
        assert_eq!(available(&limiter), 60);
        assert_eq!(admitted(&limiter, "k", &Cost::new(), 1_000), 60);
    }
}

#[test]
fn s02_lowered_limit_caps_available_and_raise_adds() {
    let (limiter, clock) = manual(buckets(Quota::new().rpm(60)));
    assert_eq!(admitted(&limiter, "k", &Cost::new(), 10), 10);
    limiter.quotas().set("k", &buckets(Quota::new().rpm(30))).unwrap();
    assert_eq!((available(&limiter), limiter.stats("k").limits[0].limit), (20, 30));
    limiter.quotas().set("k", &buckets(Quota::new().rpm(5))).unwrap();
    assert_eq!(available(&limiter), 0);
    limiter.quotas().set("k", &buckets(Quota::new().rpm(100))).unwrap();
    assert_eq!(available(&limiter), 90);
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(available(&limiter), 100);
}

#[test]
fn s02_unknown_or_removed_resource_is_an_error() {
    let limiter = builder().unknown_key(UnknownKey::Refuse).quota("k", Quota::new().rpm(9));
    let limiter = limiter.clock(ManualClock::new()).build().unwrap();
    assert_eq!(limiter.try_acquire("other", &Cost::new()).unwrap_err().code, Code::UnknownModel);
    assert_eq!(limiter.decide("other", &Cost::new()).code.as_str(), "unknown_model");
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    assert!(limiter.quotas().remove("k"));
    assert_eq!(limiter.try_acquire("k", &Cost::new()).unwrap_err().code, Code::UnknownModel);
    assert!(!limiter.quotas().remove("k"), "already removed");
    assert!(
        limiter.state().keys().iter().all(|key| key != "other"),
        "a refused request creates no key"
    );
}

#[tokio::test(start_paused = true)]
async fn s02_unknown_resource_fails_without_waiting() {
    let limiter = builder().unknown_key(UnknownKey::Refuse).clock(TokioClock::new());
    let error = limiter.build().unwrap().acquire("k", &Cost::new()).await.unwrap_err();
    assert_eq!(error.refused().map(|refused| refused.code), Some(Code::UnknownModel));
}

#[tokio::test(start_paused = true)]
async fn s02_waiters_of_removed_resource_are_rejected() {
    for policy in [UnknownKey::Refuse, UnknownKey::Allow] {
        let limiter = builder().unknown_key(policy).quota("k", Quota::new().rpm(1));
        let limiter = limiter.clock(TokioClock::new()).build().unwrap();
        let begin = limiter.now();
        drop(limiter.acquire("k", &Cost::new()).await.unwrap());
        let waiters: Vec<_> = (0..20).map(|_| waiter(&limiter, "k", &Cost::new())).collect();
        settle_down().await;
        limiter.quotas().remove("k");
        for waiter in waiters {
            let error = waiter.await.unwrap().unwrap_err();
            assert_eq!(error, AcquireError::Removed { key: "k".into() });
        }
        assert_eq!(limiter.now(), begin);
        // The quota can be set again.
        limiter.quotas().set("k", &Quota::new().rpm(5)).unwrap();
        assert!(limiter.acquire("k", &Cost::new()).await.is_ok());
        assert_eq!(seconds(&limiter, begin), 0);
    }
}
