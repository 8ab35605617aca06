use std::time::Duration;

use paceline::limiter::{Code, ManualClock, QuotaOrigin, UnknownKey};
use paceline::provider::account_limits::ModelLimits;
use paceline::provider::{ANTHROPIC, COMPATIBLE, OPENAI};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Share, Window};

use super::{builder, tokens};

#[test]
fn exact_key_takes_precedence_then_most_specific_glob() {
    let limiter = builder()
        .quota("*", Quota::new().rpm(1))
        .quota("claude-*", Quota::new().rpm(2))
        .quota("claude-opus-*", Quota::new().rpm(3))
        .quota("claude-opus-4", Quota::new().rpm(4))
        .build()
        .unwrap();
    let rpm = |key| limiter.decide(key, &Cost::new()).stats.limits[0].limit;
    assert_eq!(rpm("gpt-4o"), 1);
    assert_eq!(rpm("claude-sonnet-4"), 2);
    assert_eq!(rpm("claude-opus-4-20250514"), 3);
    assert_eq!(rpm("claude-opus-4"), 4);
}

#[test]
fn glob_gives_each_key_separate_buckets() {
    let limiter = builder().quota("tenant:*", Quota::new().rpm(1)).build().unwrap();
    assert!(limiter.try_acquire("tenant:a", &Cost::new()).is_ok());
    assert!(limiter.try_acquire("tenant:b", &Cost::new()).is_ok());
    assert!(limiter.try_acquire("tenant:a", &Cost::new()).is_err());
}

#[test]
fn unknown_key_follows_policy() {
    let code = |policy| {
        let limiter = builder().unknown_key(policy).build().unwrap();
        let _taken = limiter.try_acquire("k", &tokens(5));
        let decision = limiter.decide("k", &tokens(5));
        (decision.code, decision.is_allowed())
    };
    assert_eq!(code(UnknownKey::Allow), (Code::UnknownModel, true));
    assert_eq!(code(UnknownKey::Refuse), (Code::UnknownModel, false));
    assert_eq!(code(UnknownKey::Quota(Quota::new().rpm(1))), (Code::RpmExceeded, false));
}

#[test]
fn quota_without_limits_is_unlimited() {
    let limiter = builder().quota("k", Quota::new().rpm(0)).build().unwrap();
    assert_eq!(limiter.decide("k", &tokens(u64::MAX)).code, Code::Unlimited);
}

#[test]
fn changed_quota_keeps_used_and_held_amounts() {
    let limiter = builder().quota("k", Quota::new().tpm(100)).build().unwrap();
    limiter.try_acquire("k", &tokens(30)).unwrap().settle(&tokens(30));
    let permit = limiter.try_acquire("k", &tokens(40)).unwrap();
    limiter.quotas().set("k", &Quota::new().rpm(9).tpm(80)).unwrap();
    let amounts = |limiter: &paceline::limiter::Limiter| {
        let stats = limiter.stats("k");
        stats.limits.iter().map(|l| (l.limit, l.used, l.held)).collect::<Vec<_>>()
    };
    assert_eq!(amounts(&limiter), [(9, 0, 0), (80, 30, 40)]);
    permit.settle(&tokens(10));
    assert_eq!(amounts(&limiter), [(9, 0, 0), (80, 40, 0)]);
}

#[test]
fn limit_added_later_is_not_settled_by_older_permit() {
    let limiter = builder().quota("k", Quota::new().rpm(9)).build().unwrap();
    let old = limiter.try_acquire("k", &tokens(40)).unwrap();
    limiter.quotas().set("k", &Quota::new().rpm(9).tpm(100)).unwrap();
    let new = limiter.try_acquire("k", &tokens(50)).unwrap();
    old.settle(&tokens(40));
    assert_eq!(limiter.stats("k").limits[1].held, 50);
    drop(new);
}

#[test]
fn build_with_empty_key_or_full_margin_is_refused() {
    let error = builder().quota("", Quota::new()).build().unwrap_err();
    assert_eq!(error.to_string(), "quota: the key is empty; name a key or a glob");
    let error = builder().build().unwrap().quotas().set("", &Quota::new().rpm(1)).unwrap_err();
    assert_eq!(error.to_string(), "quota: the key is empty; name a key or a glob");
}

#[test]
fn hold_ends_with_permit_after_profile_changes() {
    let limiter = builder().quota("gpt-*", Quota::new().tpm(100)).clock(ManualClock::new());
    let limiter = limiter.build().unwrap();
    let permit = limiter.try_acquire("gpt-4o", &tokens(60)).unwrap();
    limiter.quotas().add_provider(OPENAI).unwrap();
    permit.settle(&tokens(60));
    let limit = &limiter.stats("gpt-4o").limits[0];
    assert_eq!((limit.used, limit.held), (60, 0));
}

#[test]
fn permit_end_after_profile_change_keeps_other_usage() {
    let limiter = builder().provider(COMPATIBLE).quota("gpt-*", Quota::new().tpm(100));
    let limiter = limiter.clock(ManualClock::new()).build().unwrap();
    let old = limiter.try_acquire("gpt-4o", &tokens(40)).unwrap();
    limiter.quotas().add_provider(OPENAI).unwrap();
    let new = limiter.try_acquire("gpt-4o", &tokens(50)).unwrap();
    old.settle(&tokens(30));
    let limit = &limiter.stats("gpt-4o").limits[0];
    // OpenAI counts the new request when it is sent. The charge of the old one may not be known to it.
    assert_eq!((limit.used, limit.held), (90, 0));
    drop(new);
}

#[test]
fn concurrency_limit_ignores_window_of_limit() {
    let hour = |n| Limit::new(Dimension::Concurrency, n, Window::HOUR).unwrap();
    assert_eq!(Quota::new().limit(hour(4)).concurrency(2).limits().len(), 1);
    let limiter = builder().quota("k", Quota::new().concurrency(1)).build().unwrap();
    let held = limiter.try_acquire("k", &Cost::new()).unwrap();
    limiter.quotas().set("k", &Quota::new().limit(hour(1))).unwrap();
    assert!(limiter.try_acquire("k", &Cost::new()).is_err());
    drop(held);
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
}

#[test]
fn changed_quota_does_not_shorten_fixed_window() {
    let clock = ManualClock::new();
    let quota = |rpm| Quota::new().rpm(rpm).with_algorithm(Algorithm::FixedWindow);
    let limiter = builder().quota("k", quota(2)).clock(clock.clone()).build().unwrap();
    let unsent = limiter.try_acquire("k", &Cost::new()).unwrap();
    clock.advance(Duration::from_secs(30));
    // The provider's window starts here.
    limiter.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new());
    unsent.release();
    let fresh_at = limiter.stats("k").limits[0].fresh_at;
    assert!(fresh_at >= limiter.now() + Duration::from_nanos(60_000_000_000));
    limiter.quotas().set("k", &quota(3)).unwrap();
    assert_eq!(limiter.stats("k").limits[0].fresh_at, fresh_at);
}

#[test]
fn share_applies_to_quotas_of_every_origin() {
    let half = Share::percent(50).unwrap();
    let limiter = builder()
        .provider(OPENAI)
        .share(half)
        .unknown_key(UnknownKey::Quota(Quota::new().rpm(30)))
        .quota("own", Quota::new().rpm(7))
        .build()
        .unwrap();
    let whole = builder().provider(OPENAI).build().unwrap();
    let limit = |limiter: &paceline::limiter::Limiter, key| {
        limiter.decide(key, &Cost::new()).stats.limits[0].limit
    };
    assert_eq!([limit(&limiter, "own"), limit(&limiter, "unknown")], [3, 15]);
    assert_eq!(limit(&limiter, "gpt-4o"), limit(&whole, "gpt-4o") / 2);
    limiter.quotas().set("own", &Quota::new().rpm(100)).unwrap();
    assert_eq!(limit(&limiter, "own"), 50);
}

#[test]
fn share_applies_to_learned_limits() {
    let half = Share::percent(50).unwrap();
    let limiter =
        builder().share(half).provider(OPENAI).unknown_key(UnknownKey::Learn).build().unwrap();
    let mut headers = http::HeaderMap::new();
    headers.insert("x-ratelimit-limit-requests", "40".parse().unwrap());
    limiter.feedback().learn("new-model", &OPENAI.limits(&headers));
    assert_eq!(limiter.stats("new-model").limits[0].limit, 20);
}

#[test]
fn learned_limits_follow_headers_and_set_limits_do_not() {
    let limiter = builder().provider(OPENAI).unknown_key(UnknownKey::Learn).build().unwrap();
    let learn = |key: &str, limit: &str| {
        let mut headers = http::HeaderMap::new();
        headers.insert("x-ratelimit-limit-requests", limit.parse().unwrap());
        limiter.feedback().learn(key, &OPENAI.limits(&headers));
        limiter.stats(key).limits[0].limit
    };
    assert_eq!([learn("new-model", "40"), learn("new-model", "60")], [40, 60]);
    let held = limiter.try_acquire("new-model", &Cost::new()).unwrap();
    assert_eq!(learn("new-model", "20"), 20);
    assert_eq!(limiter.stats("new-model").limits[0].used, 1);
    drop(held);
    limiter.quotas().set("new-model", &Quota::new().rpm(7)).unwrap();
    assert_eq!(learn("new-model", "40"), 7);
}

#[test]
fn learned_limit_gains_no_second_window() {
    let limiter = builder().provider(OPENAI).unknown_key(UnknownKey::Learn).build().unwrap();
    let mut headers = http::HeaderMap::new();
    headers.insert("x-ratelimit-limit-requests", "500".parse().unwrap());
    let mut readings = OPENAI.limits(&headers);
    limiter.feedback().learn("k", &readings);
    readings[0].window = Window::DAY;
    limiter.feedback().learn("k", &readings);
    assert_eq!(limiter.quotas().of("k").limits().len(), 1);
}

/// Limits that a provider states replace its default quotas and learned ones, and not the user's.
#[test]
fn limits_from_provider_keep_quotas_of_the_user() {
    let limiter = builder().provider(OPENAI).quota("gpt-4o*", Quota::new().rpm(7)).build().unwrap();
    let follow = |models: &[&str], rpm| {
        let limits = [ModelLimits::new(models.iter().copied(), Quota::new().rpm(rpm))];
        limiter.quotas().follow_provider(OPENAI, &limits)
    };
    let rpm = |key| limiter.decide(key, &Cost::new()).stats.limits[0].limit;
    assert_eq!(follow(&["gpt-4o", "gpt-4.1", "o9", "*"], 60), 2);
    assert_eq!((rpm("gpt-4o"), rpm("gpt-4.1"), rpm("o9")), (7, 60, 60));
    limiter.try_acquire("o9", &Cost::new()).unwrap();
    assert_eq!(limiter.stats("gpt-4.1").limits[0].used, 1);
    let origin = limiter.quotas().get("o9").map(|quota| quota.origin);
    assert_eq!(origin, Some(QuotaOrigin::Provider));
    // Usage is kept when the amount changes.
    assert_eq!((follow(&["gpt-4.1", "o9"], 90), follow(&["gpt-4.1", "o9"], 90)), (2, 0));
    assert_eq!((rpm("o9"), limiter.stats("o9").limits[0].used), (90, 1));
    // A model that is no longer stated has the default quota again.
    assert_eq!(follow(&["o9"], 90), 2);
    assert!(rpm("gpt-4.1") != 90 && rpm("o9") == 90);
}

/// The quota of a model is the starting point of its modes, in buckets of their own.
#[test]
fn mode_has_the_quota_of_its_model_in_buckets_of_its_own() {
    let limiter = builder()
        .provider(ANTHROPIC)
        .quota("claude-a", Quota::new().rpm(5))
        .quota("claude-b:fast", Quota::new().rpm(3))
        .unknown_key(UnknownKey::Refuse)
        .build()
        .unwrap();
    let rpm = |key| limiter.decide(key, &Cost::new()).stats.limits[0].limit;
    assert_eq!((rpm("claude-a:fast"), rpm("claude-b:fast")), (5, 3));
    limiter.try_acquire("claude-a:fast", &Cost::new()).unwrap();
    assert_eq!(limiter.stats("claude-a").limits[0].used, 0);
    // It follows changes of the model's quota.
    limiter.quotas().set("claude-a", &Quota::new().rpm(9)).unwrap();
    assert_eq!((rpm("claude-a:fast"), limiter.stats("claude-a:fast").limits[0].used), (9, 1));
    // A family of the built-in quotas shares its limits, a mode has its own.
    limiter.try_acquire("claude-opus-4-6:fast", &Cost::new()).unwrap();
    assert_eq!(limiter.stats("claude-opus-4-6").limits[0].used, 0);
    let unknown = limiter.decide("claude-a:other", &Cost::new());
    assert_eq!(unknown.code, Code::UnknownModel);
    // Headers of a response in the mode replace the starting point.
    let mut headers = http::HeaderMap::new();
    headers.insert("anthropic-fast-input-tokens-limit", "7000".parse().unwrap());
    let readings = ANTHROPIC.limits_in_mode(Some("fast"), &headers);
    limiter.feedback().learn("claude-a:fast", &readings);
    let limits = limiter.stats("claude-a:fast").limits;
    assert_eq!((limits.len(), limits[0].limit, rpm("claude-a")), (1, 7_000, 9));
}
