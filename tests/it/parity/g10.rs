//! Precedence of quotas: configured quotas override a provider's, and no provider is added by default.

use paceline::limiter::{Code, Limiter, ManualClock, NamedQuota, QuotaOrigin, UnknownKey};
use paceline::provider::{ANTHROPIC, GEMINI, OPENAI};
use paceline::quota::{Cost, Dimension, Limit, Quota};
use paceline_limiter::seam;

use super::rig::builder;

fn rpm(limiter: &Limiter, key: &str) -> Option<u64> {
    let quota = limiter.quotas().of(key);
    let requests = |limit: &&Limit| *limit.dimension() == Dimension::Requests;
    quota.limits().iter().find(requests).map(Limit::amount)
}

#[test]
fn g10_given_quota_overrides_provider_and_keeps_others() {
    let plain = builder().provider(OPENAI).provider(ANTHROPIC).clock(ManualClock::new());
    let given = plain.clone().quota("gpt-4o", Quota::new().rpm(7)).build().unwrap();
    let plain = plain.build().unwrap();
    assert_eq!(rpm(&given, "gpt-4o"), Some(7));
    assert_ne!(rpm(&plain, "gpt-4o"), Some(7));
    for other in ["gpt-4o-mini", "claude-sonnet-4-20250514"] {
        assert!(rpm(&plain, other).is_some());
        assert_eq!(rpm(&given, other), rpm(&plain, other));
    }
}

#[test]
fn g10_without_provider_models_are_unknown() {
    let limiter = builder().unknown_key(UnknownKey::Refuse).clock(ManualClock::new());
    let limiter = limiter.build().unwrap();
    for defaults in GEMINI.quotas() {
        let refused = limiter.try_acquire(defaults.pattern, &Cost::new()).unwrap_err();
        assert_eq!(refused.code, Code::UnknownModel);
        let error = refused.to_string();
        assert!(error.contains(defaults.pattern) && error.contains("unknown"), "{error}");
    }
}

#[test]
fn g10_stored_quota_never_overrides_configured_quota() {
    let kept = [
        NamedQuota::new("gpt-4o", Quota::new().rpm(1), QuotaOrigin::Set),
        NamedQuota::new("gpt-4o-mini", Quota::new().rpm(2), QuotaOrigin::Set),
        NamedQuota::new("claude-*", Quota::new().rpm(3), QuotaOrigin::Learned),
        NamedQuota::new("o3", Quota::new().rpm(4), QuotaOrigin::Configured),
    ];
    let limiter = builder().provider(OPENAI).quota("gpt-4o", Quota::new().rpm(7));
    let limiter = limiter.clock(ManualClock::new()).build().unwrap();
    let built_in = rpm(&limiter, "o3");
    seam::restore_quotas(&limiter, &kept);
    assert_eq!(rpm(&limiter, "gpt-4o"), Some(7), "configured");
    assert_eq!(rpm(&limiter, "gpt-4o-mini"), Some(2), "set in an earlier run");
    assert_eq!(rpm(&limiter, "claude-opus"), Some(3), "learned in an earlier run");
    assert_eq!(rpm(&limiter, "o3"), built_in, "configured in an earlier run only");
    seam::configure(&limiter, "gpt-4o-mini", &Quota::new().rpm(9)).unwrap();
    seam::restore_quotas(&limiter, &kept);
    assert_eq!(rpm(&limiter, "gpt-4o-mini"), Some(9));
}
