//! The limit named by a decision.

use paceline::engine::Wait;
use paceline::limiter::{Code, ManualClock};
use paceline::quota::{Algorithm, Cost, Dimension, Quota};

use super::rig::{S, buckets, builder, manual};

#[test]
fn g06_exhausted_day_is_named_before_exhausted_minute() {
    for algorithm in [Algorithm::SlidingWindow, Algorithm::FixedWindow, Algorithm::TokenBucket] {
        let (limiter, _) = manual(Quota::new().rpm(2).tpm(9).rpd(2).with_algorithm(algorithm));
        drop(limiter.try_acquire("k", &Cost::new().requests(2).tokens(9)).unwrap());
        let decision = limiter.decide("k", &Cost::new().tokens(9));
        assert_eq!(decision.code, Code::RpdExceeded, "{algorithm:?}");
        assert_eq!(decision.dimension, Some(Dimension::Requests));
    }
}

#[test]
fn g06_longest_wait_is_named_for_any_dimension_and_order() {
    for quota in [Quota::new().rpm(60).tpm(60), Quota::new().tpm(60).rpm(60)] {
        let (limiter, _) = manual(buckets(quota));
        let all = Cost::new().requests(60).tokens(60);
        limiter.try_acquire("k", &all).unwrap().settle(&all);
        for (requests, tokens, code) in
            [(7, 2, Code::RpmExceeded), (2, 7, Code::TpmExceeded), (7, 0, Code::RpmExceeded)]
        {
            let decision = limiter.decide("k", &Cost::new().requests(requests).tokens(tokens));
            assert_eq!(decision.code, code);
            assert_eq!(decision.wait, Some(Wait::At(limiter.now() + 7 * S)));
        }
    }
}

#[test]
fn g06_unlimited_model_is_allowed_without_counting() {
    let (limiter, _) = manual(Quota::new());
    for _ in 0..1_000 {
        drop(limiter.try_acquire("k", &Cost::new().tokens(u64::MAX)).unwrap());
    }
    let decision = limiter.decide("k", &Cost::new().tokens(u64::MAX));
    assert_eq!((decision.code, decision.wait, decision.dimension), (Code::Unlimited, None, None));
    assert!(decision.stats.limits.is_empty());
}

#[test]
fn g06_key_with_longest_wait_is_named() {
    let limiter = builder()
        .quota("tenant", buckets(Quota::new().rpm(60)))
        .quota("model", buckets(Quota::new().rpm(6)))
        .clock(ManualClock::new())
        .build()
        .unwrap();
    let keys = ["tenant", "model"];
    for (key, all) in [("tenant", 60), ("model", 6)] {
        drop(limiter.try_acquire(key, &Cost::new().requests(all)).unwrap());
    }
    let refused = limiter.acquire_all(&keys, &Cost::new()).try_now().unwrap_err();
    assert_eq!((&*refused.key, refused.wait), ("model", Wait::At(limiter.now() + 10 * S)));
}
