//! Decisions: code, reason, retry time and stats.

use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{Code, Decision, Limiter, RateLimited, UnknownKey};
use paceline::quota::{Algorithm, Cost, Quota, Usage};

use super::rig::{buckets, builder, manual, paused, tokens};

const SECOND: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);

fn retry_after(decision: &Decision) -> Option<Duration> {
    decision.refused().and_then(|refused| refused.retry_after())
}

fn record(limiter: &Limiter, input: u64) {
    limiter.record("k", &Usage { input, ..Usage::default() });
}

#[test]
fn g03_every_code_of_go_ratelimit_is_returned_equally() {
    let code = |quota: Quota, taken: Cost| {
        let (limiter, _) = manual(quota);
        let _ = limiter.try_acquire("k", &taken);
        limiter.decide("k", &tokens(10)).code.as_str()
    };
    assert_eq!(code(Quota::new().rpm(2).tpm(100).rpd(9), Cost::new()), "ok");
    assert_eq!(code(Quota::new().rpm(0), Cost::new()), "unlimited");
    assert_eq!(code(Quota::new().rpd(1), Cost::new()), "rpd_exceeded");
    assert_eq!(code(Quota::new().rpm(1), Cost::new()), "rpm_exceeded");
    assert_eq!(code(Quota::new().tpm(100), tokens(91)), "tpm_exceeded");
    let unknown = builder().build().unwrap().decide("k", &tokens(10));
    assert_eq!((unknown.code.as_str(), unknown.is_allowed()), ("unknown_model", true));
    let refused = builder().unknown_key(UnknownKey::Refuse).build().unwrap();
    let unknown = refused.decide("k", &tokens(10));
    assert_eq!((unknown.code.as_str(), unknown.is_allowed()), ("unknown_model", false));
}

#[test]
fn g03_codes_beyond_go_ratelimit_are_returned() {
    let cost = Cost::new().tokens(10).input_tokens(10).output_tokens(10);
    let code = |quota: Quota| {
        let (limiter, _) = manual(quota);
        let _in_flight = limiter.try_acquire("k", &cost);
        limiter.decide("k", &cost).code.to_string()
    };
    assert_eq!(code(Quota::new().itpm(10)), "itpm_exceeded");
    assert_eq!(code(Quota::new().otpm(10)), "otpm_exceeded");
    assert_eq!(code(Quota::new().tpd(10)), "tpd_exceeded");
    assert_eq!(code(Quota::new().concurrency(1)), "concurrency_exceeded");
    assert_eq!(code(Quota::new().tpm(9)), "exceeds_capacity");
    let (limiter, _) = manual(Quota::new().rpm(9));
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(7 * SECOND)));
    let cooling = limiter.decide("k", &cost);
    assert_eq!((cooling.code.as_str(), retry_after(&cooling)), ("cooling_down", Some(7 * SECOND)));
}

#[test]
fn g03_decision_has_reason_retry_time_and_usage() {
    let (limiter, clock) = manual(buckets(Quota::new().rpm(10).tpm(6_000)));
    limiter.try_acquire("k", &tokens(5_950)).unwrap().settle(&tokens(5_950));
    let decision = limiter.decide("k", &tokens(100));
    let reason = decision.refused().unwrap().to_string();
    let text = "k: tokens per minute exceeded (needs 100, limit 6000); retry in 0.500 s";
    assert_eq!(reason, text);
    assert_eq!(retry_after(&decision), Some(SECOND / 2));
    let amounts: Vec<_> = decision.stats.limits.iter().map(|l| (l.used, l.limit)).collect();
    assert_eq!(amounts, [(1, 10), (5_950, 6_000)]);
    let too_large = limiter.decide("k", &tokens(6_001)).refused().unwrap().to_string();
    let text = "k: the request needs 6001 tokens, the limit allows at most 6000;";
    assert!(too_large.starts_with(text), "{too_large}");
    clock.advance(SECOND / 2);
    let decision = limiter.decide("k", &tokens(100));
    assert_eq!((decision.code, decision.refused()), (Code::Ok, None));
}

#[test]
fn g03_retry_time_is_exact_after_overuse() {
    let (limiter, clock) = manual(Quota::new().tpm(100));
    for _ in 0..3 {
        record(&limiter, 60);
        clock.advance(10 * SECOND);
    }
    // Of 60 at 0 s, 10 s and 20 s, two must expire before ten more fit: at 70 s, not at 60 s.
    let decision = limiter.decide("k", &tokens(10));
    assert_eq!((decision.code, retry_after(&decision)), (Code::TpmExceeded, Some(40 * SECOND)));
    clock.advance(40 * SECOND - NANO);
    assert_eq!(retry_after(&limiter.decide("k", &tokens(10))), Some(NANO));
    clock.advance(NANO);
    assert!(limiter.try_acquire("k", &tokens(10)).is_ok());
}

#[test]
fn g03_retry_time_is_exact_for_bucket_in_debt_and_window() {
    let cases = [(Algorithm::TokenBucket, 130 * SECOND), (Algorithm::FixedWindow, 60 * SECOND)];
    for (algorithm, wait) in cases {
        let (limiter, clock) = manual(Quota::new().rpm(60).with_algorithm(algorithm));
        (0..180).for_each(|_| record(&limiter, 0));
        let cost = Cost::new().requests(10);
        assert_eq!(retry_after(&limiter.decide("k", &cost)), Some(wait), "{algorithm:?}");
        clock.advance(wait - NANO);
        assert!(limiter.try_acquire("k", &cost).is_err(), "{algorithm:?}");
        clock.advance(NANO);
        assert!(limiter.try_acquire("k", &cost).is_ok(), "{algorithm:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn g03_cost_above_limit_never_fits_and_does_not_wait() {
    let limiter = paused(Quota::new().tpm(100));
    let begin = limiter.now();
    let decision = limiter.decide("k", &tokens(101));
    assert_eq!(decision.code, Code::ExceedsCapacity);
    assert_eq!((decision.wait, retry_after(&decision)), (Some(Wait::Never), None));
    assert!(limiter.acquire("k", &tokens(101)).await.is_err());
    assert!(limiter.wait_for_capacity("k", &tokens(101)).await.is_err());
    assert_eq!(limiter.now(), begin);
}
