//! The life of a key: created, shared, reset, removed, pruned.

use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{AcquireError, Code, Limiter, ManualClock, RateLimited, UnknownKey};
use paceline::provider;
use paceline::quota::{Algorithm, Cost, Dimension, Quota};

use super::{builder, manual, paused, settle_down, tokens};

fn buckets(quota: Quota) -> Quota {
    quota.with_algorithm(Algorithm::TokenBucket)
}

fn available(limiter: &Limiter, key: &str) -> u64 {
    limiter.stats(key).limits[0].available
}

#[tokio::test(start_paused = true)]
async fn removed_key_rejects_waiters() {
    let limiter = paused(Quota::new().rpm(1));
    limiter.acquire("k", &Cost::new()).await.unwrap();
    let waiting = [0, 1].map(|_| tokio::spawn(limiter.acquire("k", &Cost::new())));
    settle_down().await;
    assert!(limiter.quotas().remove("k") && !limiter.quotas().remove("k"));
    for waiter in waiting {
        let error = waiter.await.unwrap().unwrap_err();
        assert_eq!(error, AcquireError::Removed { key: "k".into() });
    }
    // Afterwards the key is unknown.
    limiter.acquire("k", &Cost::new()).await.unwrap();
    assert_eq!(limiter.decide("k", &Cost::new()).code, Code::UnknownModel);
}

#[test]
fn removed_key_is_refused_when_unknown_keys_are_refused() {
    let limiter = builder().quota("k", Quota::new().rpm(9)).unknown_key(UnknownKey::Refuse);
    let limiter = limiter.build().unwrap();
    let handle = limiter.key("k").unwrap();
    limiter.try_acquire("k", &Cost::new()).unwrap();
    limiter.quotas().remove("k");
    for refused in [limiter.try_acquire("k", &Cost::new()), handle.try_acquire(&Cost::new())] {
        let refused = refused.unwrap_err();
        assert_eq!((refused.code, refused.wait), (Code::UnknownModel, Wait::Never));
    }
    limiter.quotas().set("k", &Quota::new().rpm(9)).unwrap();
    handle.try_acquire(&Cost::new()).unwrap();
    limiter.try_acquire("k", &Cost::new()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn removed_key_matching_a_glob_continues_under_glob() {
    let limiter = builder().clock(paceline::limiter::TokioClock::new());
    let limiter = limiter.quota("k*", buckets(Quota::new().rpm(60))).build().unwrap();
    limiter.quotas().set("k1", &buckets(Quota::new().rpm(1))).unwrap();
    limiter.acquire("k1", &Cost::new()).await.unwrap();
    let waiter = tokio::spawn(limiter.acquire("k1", &Cost::new()));
    settle_down().await;
    limiter.quotas().remove("k1");
    waiter.await.unwrap().unwrap();
    assert_eq!(limiter.stats("k1").limits[0].used, 2);
}

#[test]
fn reset_clears_usage_and_keeps_held_amounts() {
    let (limiter, _) = manual(Quota::new().rpm(2).concurrency(5));
    let held = limiter.try_acquire("k", &Cost::new()).unwrap();
    limiter.try_acquire("k", &Cost::new()).unwrap();
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(60))));
    limiter.try_acquire("k", &Cost::new()).unwrap_err();
    limiter.reset("k");
    let stats = limiter.stats("k");
    assert_eq!((stats.limits[0].used, stats.limits[1].held, stats.cooling_until), (0, 1, None));
    drop(held);
    assert_eq!(limiter.stats("k").limits[1].held, 0);
    limiter.try_acquire("k", &Cost::new()).unwrap();
    limiter.reset_all();
    assert_eq!(limiter.stats("k").limits[0].used, 0);
}

#[tokio::test(start_paused = true)]
async fn reset_wakes_first_waiter_immediately() {
    let limiter = paused(Quota::new().rpm(1));
    limiter.acquire("k", &Cost::new()).await.unwrap();
    let waiter = tokio::spawn(limiter.acquire("k", &Cost::new()));
    settle_down().await;
    limiter.reset("k");
    settle_down().await;
    assert!(waiter.is_finished());
}

#[tokio::test(start_paused = true)]
async fn lowered_quota_rejects_waiters_unable_to_succeed() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let _first = tokio::spawn(limiter.acquire("k", &tokens(5)));
    settle_down().await;
    let second = tokio::spawn(limiter.acquire("k", &tokens(50)));
    let urgent = limiter.acquire("k", &tokens(5)).max_wait(Duration::from_secs(30));
    let urgent = tokio::spawn(urgent);
    settle_down().await;
    limiter.quotas().set("k", &buckets(Quota::new().tpm(20))).unwrap();
    let begin = limiter.now();
    let error = second.await.unwrap().unwrap_err();
    assert_eq!(error.refused().unwrap().code, Code::ExceedsCapacity);
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(31))));
    let error = urgent.await.unwrap().unwrap_err();
    assert!(matches!(error, AcquireError::DeadlineExceeded { .. }));
    assert_eq!(limiter.now(), begin);
}

#[test]
fn prune_drops_idle_key_only_after_full_refill() {
    let clock = ManualClock::new();
    let limiter = builder().quota("*", buckets(Quota::new().rpm(60))).clock(clock.clone());
    let limiter = limiter.build().unwrap();
    limiter.try_acquire("a", &Cost::new()).unwrap();
    assert_eq!((limiter.state().prune(), limiter.state().keys().len()), (0, 1));
    clock.advance(Duration::from_secs(1));
    assert_eq!((limiter.state().prune(), limiter.state().keys().len()), (1, 0));
    assert_eq!(available(&limiter, "a"), 60);
    limiter.try_acquire("a", &Cost::new().requests(60)).unwrap();
    assert_eq!(available(&limiter, "a"), 0);
}

#[test]
fn prune_keeps_key_with_permit_handle_or_cool_down() {
    let clock = ManualClock::new();
    let limiter = builder().quota("*", Quota::new().concurrency(1)).clock(clock.clone());
    let limiter = limiter.build().unwrap();
    let permit = limiter.try_acquire("held", &Cost::new()).unwrap();
    let handle = limiter.key("pinned").unwrap();
    limiter.feedback().rate_limited("cooling", &RateLimited::new(Some(Duration::from_secs(9))));
    limiter.try_acquire("gone", &Cost::new()).unwrap();
    assert_eq!(limiter.state().prune(), 1);
    assert_eq!(limiter.state().keys(), ["cooling", "held", "pinned"]);
    clock.advance(Duration::from_secs(9));
    drop((permit, handle));
    assert_eq!((limiter.state().prune(), limiter.state().keys().len()), (3, 0));
}

#[test]
fn idle_keys_are_pruned_as_new_keys_arrive() {
    let clock = ManualClock::new();
    let limiter = builder().quota("*", buckets(Quota::new().rpm(60))).clock(clock.clone());
    let limiter = limiter.build().unwrap();
    for number in 0..20_000 {
        limiter.try_acquire(&format!("key {number}"), &Cost::new()).unwrap();
        clock.advance(Duration::from_millis(100));
    }
    assert!(limiter.state().keys().len() < 500, "{} keys", limiter.state().keys().len());
}

#[test]
fn key_with_permit_is_kept_until_the_permit_ends() {
    let clock = ManualClock::new();
    let limiter = builder().quota("*", buckets(Quota::new().rpm(60))).clock(clock.clone());
    let limiter = limiter.max_keys(1).build().unwrap();
    let old = limiter.try_acquire("a", &Cost::new()).unwrap();
    clock.advance(Duration::from_secs(2));
    let refused = limiter.try_acquire("b", &Cost::new()).unwrap_err();
    assert_eq!(refused.code, Code::TooManyKeys);
    drop(old);
    limiter.try_acquire("b", &Cost::new().requests(9)).unwrap();
    assert_eq!(limiter.state().keys(), ["b"]);
    assert_eq!(available(&limiter, "b"), 51);
}

#[test]
fn permit_of_moved_key_ends_without_touching_another() {
    let quota = buckets(Quota::new().rpm(60));
    let limiter = builder().quota("*", quota.clone()).clock(ManualClock::new()).build().unwrap();
    let old = limiter.try_acquire("m-1", &Cost::new()).unwrap();
    limiter.quotas().set("m-*", &quota.shared()).unwrap();
    limiter.try_acquire("m-2", &Cost::new().requests(9)).unwrap();
    // Its reservation was counted when the key moved.
    old.settle(&Cost::new().requests(30));
    assert_eq!(available(&limiter, "m-1"), 50);
}

#[test]
fn key_above_max_keys_is_refused_and_debt_is_kept() {
    let clock = ManualClock::new();
    let limiter = builder().quota("*", buckets(Quota::new().rpm(60))).clock(clock.clone());
    let limiter = limiter.max_keys(10).build().unwrap();
    for number in 0..10 {
        limiter.try_acquire(&format!("{number}"), &Cost::new().requests(60)).unwrap();
    }
    let refused = limiter.try_acquire("one more", &Cost::new()).unwrap_err();
    assert_eq!((refused.code, refused.wait), (Code::TooManyKeys, Wait::Unknown));
    assert_eq!(limiter.key("one more").unwrap_err().code, Code::TooManyKeys);
    assert_eq!(limiter.state().keys().len(), 10);
    clock.advance(Duration::from_secs(60));
    limiter.try_acquire("one more", &Cost::new()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiter_keeps_all_keys_of_request_from_pruning() {
    let limiter = builder().clock(paceline::limiter::TokioClock::new());
    let limiter = limiter.quota("*", buckets(Quota::new().rpm(60))).build().unwrap();
    limiter.acquire("short", &Cost::new().requests(60)).await.unwrap();
    let waiter = tokio::spawn(limiter.acquire_all(&["idle", "short"], &Cost::new()));
    settle_down().await;
    assert_eq!((limiter.state().prune(), limiter.state().keys().len()), (0, 2));
    waiter.await.unwrap().unwrap();
    assert_eq!(limiter.stats("idle").limits[0].used, 1);
}

#[test]
fn keys_and_stats_are_sorted_and_include_configured_keys() {
    let limiter = builder().quota("b", Quota::new().rpm(7)).quota("x*", Quota::new().rpm(5));
    let limiter = limiter.build().unwrap();
    limiter.try_acquire("xa", &Cost::new()).unwrap();
    limiter.try_acquire("a", &Cost::new()).unwrap();
    assert_eq!(limiter.state().keys(), ["a", "b", "xa"]);
    let amounts: Vec<_> = limiter
        .state()
        .stats()
        .into_iter()
        .map(|(key, stats)| (key, stats.limits.first().map(|limit| (limit.limit, limit.used))))
        .collect();
    let expected = [("a", None), ("b", Some((7, 0))), ("xa", Some((5, 1)))];
    assert_eq!(amounts, expected.map(|(key, amounts)| (key.into(), amounts)));
}

#[test]
fn stats_and_decide_create_no_key() {
    let limiter = builder().quota("*", Quota::new().rpm(5)).build().unwrap();
    assert!(limiter.decide("a", &Cost::new()).is_allowed());
    assert_eq!(limiter.decide("a", &Cost::new().requests(6)).code, Code::ExceedsCapacity);
    assert_eq!(available(&limiter, "a"), 5);
    assert_eq!(limiter.quotas().of("a"), Quota::new().rpm(5));
    assert!(limiter.state().keys().is_empty());
}

#[test]
fn keys_of_shared_glob_use_the_same_buckets() {
    let limiter = builder().quota("gpt-4o*", Quota::new().rpm(3).shared());
    let limiter = limiter.quota("gpt-4o-mini", Quota::new().rpm(9)).build().unwrap();
    limiter.try_acquire("gpt-4o", &Cost::new()).unwrap();
    limiter.try_acquire("gpt-4o-2024-08-06", &Cost::new()).unwrap();
    limiter.key("gpt-4o-audio").unwrap().try_acquire(&Cost::new()).unwrap();
    let refused = limiter.try_acquire("gpt-4o-2024-11-20", &Cost::new()).unwrap_err();
    assert_eq!((&*refused.key, refused.code), ("gpt-4o*", Code::RpmExceeded));
    limiter.try_acquire("gpt-4o-mini", &Cost::new()).unwrap();
    assert_eq!(available(&limiter, "gpt-4o-anything"), 0);
    assert_eq!(limiter.state().keys(), ["gpt-4o*", "gpt-4o-mini"]);
}

#[test]
fn request_with_two_keys_of_shared_glob_counts_once() {
    let limiter = builder().quota("g*", Quota::new().rpm(9).shared()).build().unwrap();
    limiter.acquire_all(&["g1", "g2"], &Cost::new()).try_now().unwrap();
    assert_eq!(available(&limiter, "g"), 8);
}

#[test]
fn quota_becoming_shared_takes_over_the_usage_of_keys() {
    let limiter = builder().quota("g*", Quota::new().rpm(9)).build().unwrap();
    let permit = limiter.try_acquire("g1", &Cost::new()).unwrap();
    limiter.quotas().set("g*", &Quota::new().rpm(2).shared()).unwrap();
    limiter.try_acquire("g2", &Cost::new()).unwrap();
    limiter.try_acquire("g1", &Cost::new()).unwrap_err();
    limiter.try_acquire("g2", &Cost::new()).unwrap_err();
    drop(permit);
    assert_eq!(limiter.state().keys(), ["g*"]);
}

#[test]
fn provider_added_later_limits_matching_keys() {
    let limiter = builder().build().unwrap();
    let model = "gpt-4o";
    limiter.try_acquire(model, &Cost::new()).unwrap();
    assert_eq!(limiter.decide(model, &Cost::new()).code, Code::UnknownModel);
    limiter.quotas().add_provider(provider::OPENAI).unwrap();
    assert_eq!(limiter.decide(model, &Cost::new()).code, Code::Ok);
    assert!(!limiter.quotas().of(model).is_unlimited());
}

#[test]
fn limits_given_with_acquire_apply_to_key() {
    let (limiter, clock) = manual(Quota::new());
    let five = Quota::new().rpm(5).tpm(100);
    let take = |limits: &Quota, cost: &Cost| limiter.acquire("user:chat", cost).limits(limits);
    let now = |limits: &Quota, cost: &Cost| take(limits, cost).try_now();
    now(&five, &tokens(60)).unwrap();
    let refused = now(&five, &tokens(50)).unwrap_err();
    assert_eq!(refused.code, Code::TpmExceeded);
    assert_eq!(limiter.stats("user:chat").limits[0].used, 1);
    let decide = |limits: &Quota| limiter.acquire("user:chat", &tokens(50)).limits(limits).decide();
    assert_eq!(decide(&five).code, Code::TpmExceeded);
    assert!(decide(&Quota::new().tpm(200)).is_allowed(), "earlier usage is kept");
    assert_eq!(limiter.stats("user:chat").limits.len(), 2, "a decision changes no limits");
    clock.advance(Duration::from_secs(60));
    now(&five, &tokens(50)).unwrap();
}

#[test]
fn cost_without_a_given_limit_is_an_error() {
    let (limiter, _) = manual(Quota::new());
    let cost = tokens(5).custom("images", 1);
    let refused = limiter.acquire("k", &cost).limits(&Quota::new().tpm(5)).try_now().unwrap_err();
    assert_eq!((refused.code, refused.wait), (Code::MissingLimit, Wait::Never));
    assert_eq!(refused.dimension, Some(Dimension::custom("images")));
    let advice = "add such a limit, or state the cost in dimensions that are limited";
    assert_eq!(refused.to_string(), format!("k: no limit counts images; {advice}"));
    let decision = limiter.acquire("k", &cost).limits(&Quota::new().rpm(5)).decide();
    assert_eq!((decision.code, decision.dimension), (Code::MissingLimit, Some(Dimension::Tokens)));
    assert!(limiter.stats("k").limits.is_empty(), "a refused request sets no limits");
}

#[tokio::test(start_paused = true)]
async fn wait_for_capacity_reserves_zero() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let begin = limiter.now();
    limiter.wait_for_capacity("k", &tokens(10)).await.unwrap();
    assert_eq!(((limiter.now() - begin).as_secs(), limiter.stats("k").limits[0].used), (10, 50));
    let short = limiter.wait_for_capacity("k", &tokens(30)).max_wait(Duration::from_secs(19));
    assert!(matches!(short.await, Err(AcquireError::DeadlineExceeded { .. })));
    let never = limiter.wait_for_capacity("k", &tokens(61)).await.unwrap_err();
    assert_eq!(never.refused().unwrap().code, Code::ExceedsCapacity);
    assert_eq!((limiter.now() - begin).as_secs(), 10, "both fail immediately");
    let waiting = tokio::spawn(limiter.wait_for_capacity("k", &tokens(60)));
    settle_down().await;
    limiter.close().await;
    assert_eq!(waiting.await.unwrap(), Err(AcquireError::Closed));
}

#[tokio::test(start_paused = true)]
async fn wait_for_capacity_behind_request_ends_at_deadline() {
    let limiter = paused(Quota::new().concurrency(1));
    let _held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let begin = limiter.now();
    let waiting = limiter.wait_for_capacity("k", &Cost::new()).max_wait(Duration::from_secs(7));
    assert!(matches!(waiting.await, Err(AcquireError::DeadlineExceeded { .. })));
    assert_eq!((limiter.now() - begin).as_secs(), 7);
}

/// Creating a key prunes idle keys, but never another key of the same request.
#[test]
fn new_keys_of_one_request_are_not_pruned_for_each_other() {
    let limiter = builder().quota("*", Quota::new().rpm(9)).max_keys(2).build().unwrap();
    let keys: Vec<String> = (0..300).map(|number| format!("key {number}")).collect();
    let refused = limiter.acquire_all(&keys[..3], &Cost::new()).try_now().unwrap_err();
    assert_eq!(refused.code, Code::TooManyKeys);
    let limiter = builder().quota("*", Quota::new().rpm(9)).build().unwrap();
    limiter.acquire_all(&keys, &Cost::new()).try_now().unwrap();
    assert!(keys.iter().all(|key| limiter.stats(key).limits[0].used == 1));
}

#[test]
fn quota_of_exact_key_replaces_limits_given_with_acquire() {
    let limiter = builder().quota("k", Quota::new().tpm(1_000)).build().unwrap();
    let given = limiter.acquire("k", &tokens(5)).limits(&Quota::new().tpm(50));
    given.try_now().unwrap();
    assert_eq!(limiter.quotas().of("k"), Quota::new().tpm(50));
    limiter.quotas().set("*", &Quota::new().tpm(7)).unwrap();
    assert_eq!(limiter.quotas().of("k"), Quota::new().tpm(50));
    limiter.quotas().set("k", &Quota::new().tpm(2_000)).unwrap();
    assert_eq!(limiter.quotas().of("k"), Quota::new().tpm(2_000));
    assert_eq!(limiter.stats("k").limits[0].held, 0);
    let given = limiter.acquire("k", &tokens(5)).limits(&Quota::new().tpm(50));
    given.try_now().unwrap();
    limiter.quotas().remove("k");
    assert_eq!(limiter.quotas().of("k"), Quota::new().tpm(7));
}
