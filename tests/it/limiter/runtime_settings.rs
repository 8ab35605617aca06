use std::time::Duration;

use paceline::limiter::{
    AcquireError, Boot, Clock, Code, Limiter, ManualClock, NamedQuota, QuotaOrigin, RateLimited,
    Reduction, Regex, SystemClock, UnknownKey,
};
use paceline::quota::{Cost, Limit, Quota, Share};
use paceline_limiter::seam;

use super::{builder, paused, settle_down, tokens};

fn names(limiter: &Limiter) -> Vec<(String, QuotaOrigin)> {
    limiter.quotas().list().into_iter().map(|quota| (quota.name, quota.origin)).collect()
}

#[test]
fn quotas_are_listed_as_given_with_origin() {
    let share = Share::percent(50).unwrap();
    let limiter = builder().quota("b", Quota::new().rpm(10)).share(share).build().unwrap();
    let version = seam::quotas_version(&limiter);
    limiter.quotas().set("a-*", &Quota::new().rpm(7)).unwrap();
    seam::configure(&limiter, "c", &Quota::new().tpm(9)).unwrap();
    limiter.quotas().set_regex(&Regex::new("u[0-9]+").unwrap(), &Quota::new().rpm(3)).unwrap();
    assert!(seam::quotas_version(&limiter) > version);
    let expected = [
        ("a-*".to_owned(), QuotaOrigin::Set),
        ("b".to_owned(), QuotaOrigin::Configured),
        ("c".to_owned(), QuotaOrigin::Configured),
        ("regex:u[0-9]+".to_owned(), QuotaOrigin::Set),
    ];
    assert_eq!(names(&limiter), expected);
    assert_eq!(
        limiter.quotas().list()[1].quota,
        Quota::new().rpm(10),
        "the quota is listed before the share"
    );
    for quota in limiter.quotas().list() {
        assert_eq!(limiter.quotas().get(&quota.name), Some(quota));
    }
    assert_eq!((limiter.quotas().get("a-1"), limiter.quotas().len()), (None, 4));
    assert_eq!(limiter.quotas().of("b"), Quota::new().rpm(10).with_share(share));
    let version = seam::quotas_version(&limiter);
    assert!(limiter.quotas().remove("a-*"));
    assert!(seam::quotas_version(&limiter) > version);
    assert_eq!(limiter.quotas().len(), 3);
}

#[test]
fn restored_quotas_yield_to_configured_and_keep_origin() {
    let limiter = builder().quota("a", Quota::new().rpm(10)).build().unwrap();
    drop(limiter.try_acquire("b", &Cost::new()).unwrap());
    seam::restore_quotas(
        &limiter,
        &[
            NamedQuota::new("a", Quota::new().rpm(1), QuotaOrigin::Set),
            NamedQuota::new("b", Quota::new().rpm(2), QuotaOrigin::Learned),
            NamedQuota::new("gone", Quota::new().rpm(3), QuotaOrigin::Configured),
            NamedQuota::new("regex:x+", Quota::new().rpm(4), QuotaOrigin::Set),
        ],
    );
    let expected = [
        ("a".to_owned(), QuotaOrigin::Configured),
        ("b".to_owned(), QuotaOrigin::Learned),
        ("regex:x+".to_owned(), QuotaOrigin::Set),
    ];
    assert_eq!(names(&limiter), expected);
    assert_eq!(limiter.quotas().of("a"), Quota::new().rpm(10));
    assert_eq!(limiter.stats("b").limits[0].limit, 2, "in use immediately");
    assert_eq!(limiter.quotas().of("xx"), Quota::new().rpm(4));
}

#[test]
fn regex_quota_applies_after_keys_and_globs_first_match() {
    let regex = |pattern| Regex::new(pattern).unwrap();
    let limiter = builder()
        .quota_regex(regex("user-[0-9]+"), Quota::new().rpm(1))
        .quota_regex(regex("user-.*"), Quota::new().rpm(2))
        .quota_regex(regex("a|ab"), Quota::new().rpm(3))
        .quota_regex(regex("(?x) verbose # with a comment"), Quota::new().rpm(4))
        .quota("user-7*", Quota::new().rpm(5))
        .quota("user-8", Quota::new().rpm(6))
        .build()
        .unwrap();
    let rpm = |key: &str| limiter.quotas().of(key).limits().first().map_or(0, Limit::amount);
    let keys = ["user-1", "user-x", "user-71", "user-8", "xuser-1", "ab", "verbose", "user-"];
    assert_eq!(keys.map(rpm), [1, 2, 5, 6, 0, 3, 4, 2]);
    drop(limiter.try_acquire("user-1", &Cost::new()).unwrap());
    assert!(limiter.try_acquire("user-1", &Cost::new()).is_err());
    assert!(limiter.try_acquire("user-2", &Cost::new()).is_ok(), "each key has separate buckets");
    assert!(limiter.quotas().remove("regex:user-[0-9]+"));
    assert!(!limiter.quotas().remove("regex:user-[0-9]+"));
    assert_eq!(rpm("user-1"), 2);
}

#[test]
fn keys_of_shared_regex_use_the_same_buckets() {
    let limiter = builder().build().unwrap();
    limiter
        .quotas()
        .set_regex(&Regex::new("m[0-9]").unwrap(), &Quota::new().rpm(2).shared())
        .unwrap();
    drop(limiter.try_acquire("m1", &Cost::new()).unwrap());
    drop(limiter.try_acquire("m2", &Cost::new()).unwrap());
    assert_eq!(limiter.try_acquire("m3", &Cost::new()).unwrap_err().key, "regex:m[0-9]");
}

#[test]
fn key_resembling_pattern_is_not_learned() {
    let limiter = builder().unknown_key(UnknownKey::Learn).build().unwrap();
    let mut headers = http::HeaderMap::new();
    headers.insert("x-ratelimit-limit-requests", 5.into());
    limiter.feedback().learn("regex:.*", &paceline::provider::OPENAI.limits(&headers));
    assert_eq!(limiter.quotas().list(), []);
}

#[tokio::test(start_paused = true)]
async fn unknown_key_policy_set_later_applies_immediately() {
    let limiter = paused(Quota::new().rpm(10));
    limiter.quotas().set_unknown_key(UnknownKey::Quota(Quota::new().concurrency(1))).unwrap();
    let held = limiter.try_acquire("other", &Cost::new()).unwrap();
    let wait = |limiter: &Limiter| {
        let limiter = limiter.clone();
        tokio::spawn(async move { limiter.acquire("other", &Cost::new()).await.map(drop) })
    };
    let waiting = wait(&limiter);
    settle_down().await;
    limiter.quotas().set_unknown_key(UnknownKey::Quota(Quota::new().concurrency(2))).unwrap();
    assert_eq!(waiting.await.unwrap(), Ok(()));
    limiter.quotas().set_unknown_key(UnknownKey::Refuse).unwrap();
    let refused = limiter.try_acquire("other", &Cost::new()).unwrap_err();
    assert_eq!(refused.code, Code::UnknownModel);
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    limiter.quotas().set_unknown_key(UnknownKey::Learn).unwrap();
    let learning = limiter.try_acquire("other", &Cost::new());
    let waiting = wait(&limiter);
    settle_down().await;
    limiter.quotas().set_unknown_key(UnknownKey::Allow).unwrap();
    settle_down().await;
    assert!(matches!(waiting.await.unwrap(), Ok(()) | Err(AcquireError::Removed { .. })));
    drop((held, learning));
    assert!(limiter.quotas().of("other").is_unlimited());
}

#[test]
fn reduction_set_later_applies_and_off_ends_reductions() {
    let clock = ManualClock::new();
    let limiter = Limiter::builder().quota("k", Quota::new().rpm(100)).clock(clock.clone());
    let limiter = limiter.build().unwrap();
    let refuse = || limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::ZERO)));
    let amount = || limiter.stats("k").limits[0].limit;
    refuse();
    assert_eq!(amount(), 50);
    let pace = Reduction::new().factor(0.9).recovery_factor(2.0).interval(Duration::from_secs(2));
    limiter.feedback().set_reduction(&pace).unwrap();
    clock.advance(Duration::from_secs(2));
    assert_eq!(amount(), 100, "the key recovers at the new pace");
    refuse();
    assert_eq!(amount(), 90);
    assert!(limiter.feedback().set_reduction(&pace.factor(2.0)).is_err());
    assert_eq!(amount(), 90);
    limiter.feedback().set_reduction(&Reduction::OFF).unwrap();
    assert_eq!(amount(), 100);
    refuse();
    assert_eq!(amount(), 100);
}

#[tokio::test(start_paused = true)]
async fn lower_max_waiting_refuses_newcomers_and_keeps_waiters() {
    let limiter = paused(Quota::new().tpm(60));
    drop(limiter.try_acquire("k", &tokens(60)).unwrap());
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire("k", &tokens(1)).await.map(drop) }
    });
    settle_down().await;
    limiter.quotas().set_max_waiting(1);
    let error = limiter.acquire("k", &tokens(1)).await.unwrap_err();
    assert!(matches!(error, AcquireError::QueueFull { waiting: 1, .. }), "{error}");
    limiter.quotas().set_max_waiting(2);
    let second = limiter.acquire("k", &tokens(1));
    assert_eq!(waiting.await.unwrap(), Ok(()));
    assert!(second.await.is_ok());
}

#[test]
fn clock_reports_boot_id_and_uptime_when_known() {
    let boot = Boot::new(7, Duration::from_nanos(100));
    let clock = ManualClock::with_boot(boot);
    clock.advance(Duration::from_nanos(23));
    assert_eq!(clock.boot(), Some(Boot::new(7, Duration::from_nanos(123))));
    assert_eq!(ManualClock::new().boot(), None);
    let limiter = builder().clock(clock).build().unwrap();
    assert_eq!(seam::boot(&limiter), Some(Boot::new(7, Duration::from_nanos(123))));
}

#[cfg(target_os = "linux")]
#[test]
fn system_clock_reports_boot_on_linux() {
    let (early, late) = (SystemClock::new().boot().unwrap(), SystemClock::new().boot().unwrap());
    assert_eq!(early.id, late.id);
    assert!(early.id != 0 && !early.uptime.is_zero());
}
