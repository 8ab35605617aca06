//! The keys whose limits count by a provider's rules: models, and no tenant, account or client.

use std::time::Duration;

use paceline::limiter::{Limiter, ManualClock, UnknownKey};
use paceline::provider::{ANTHROPIC, AZURE, OPENAI, OPENROUTER};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Usd, Window};

use super::{builder, tokens};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: u32 = 24 * 60;

/// Returns whether a limit of the key on tokens per minute refills within the minute.
fn refills(limiter: &Limiter, clock: &ManualClock, key: &str) -> bool {
    limiter.try_acquire(key, &tokens(500)).unwrap();
    clock.advance(MINUTE / 2);
    let used = limiter.stats(key).get(&Dimension::Tokens).unwrap().used;
    limiter.reset(key);
    clock.advance(2 * MINUTE);
    used < 500
}

/// Spends an amount under the keys once a minute for a day, and returns the sum that was admitted.
fn spent_in_a_day(limiter: &Limiter, clock: &ManualClock, keys: &[&str], cost: &Cost) -> usize {
    let spent = (0..DAY).filter(|_| {
        let is_admitted = limiter.acquire_all(keys, cost).try_now().is_ok();
        clock.advance(MINUTE);
        is_admitted
    });
    spent.count()
}

#[test]
fn money_per_day_is_spent_once_until_midnight() {
    for (key, algorithm) in
        [("gpt-4o", None), ("gpt-4o", Some(Algorithm::TokenBucket)), ("k", None)]
    {
        let clock = ManualClock::new();
        // The clock starts at midnight UTC.
        let quota = Quota::new().usd_per_day(Usd::from_micros(50));
        let quota = algorithm.into_iter().fold(quota, Quota::with_algorithm);
        let limiter = builder().provider(OPENAI).quota(key, quota).clock(clock.clone()).build();
        let (limiter, cost) = (limiter.unwrap(), Cost::new().usd(Usd::from_micros(1)));
        for day in 0..3 {
            assert_eq!(spent_in_a_day(&limiter, &clock, &[key], &cost), 50, "{key}, day {day}");
        }
    }
}

#[test]
fn money_per_month_is_spent_once_until_the_first() {
    let clock = ManualClock::new();
    let quota = Quota::new().usd_per_month(Usd::from_micros(50));
    let limiter = builder().provider(OPENAI).quota("gpt-4o", quota).clock(clock.clone()).build();
    let (limiter, cost) = (limiter.unwrap(), Cost::new().usd(Usd::from_micros(1)));
    // The clock starts on the first of January, or a month that is as long.
    let spent: Vec<_> =
        (0..33).map(|_| spent_in_a_day(&limiter, &clock, &["gpt-4o"], &cost)).collect();
    let days: Vec<_> = (0..33).filter(|day| spent[*day] > 0).collect();
    assert_eq!((days, spent.iter().sum::<usize>()), (vec![0, 31], 100));
}

#[test]
fn budgets_are_never_exceeded_by_debt_and_never_refill() {
    let hour = Limit::usd(Usd::from_micros(50), Window::HOUR).unwrap();
    let usd = |micros| Cost::new().usd(Usd::from_micros(micros));
    for quota in [
        Quota::new().usd_per_day(Usd::from_micros(50)).with_debt(),
        Quota::new().usd_total(Usd::from_micros(50)).with_debt(),
        Quota::new().limit(hour.clone().with_debt()),
        Quota::new().limit(hour.clone().with_algorithm(Algorithm::TokenBucket)),
        Quota::new().limit(hour.with_burst(100)),
    ] {
        let clock = ManualClock::new();
        let limiter = builder().quota("k", quota.clone()).clock(clock.clone()).build().unwrap();
        clock.advance(MINUTE);
        assert!(limiter.try_acquire("k", &usd(51)).is_err(), "{quota:?}");
        limiter.try_acquire("k", &usd(50)).unwrap().settle(&usd(50));
        clock.advance(MINUTE);
        assert!(limiter.try_acquire("k", &usd(1)).is_err(), "{quota:?}");
    }
}

#[test]
fn money_in_other_windows_never_refills() {
    let clock = ManualClock::new();
    let day = Limit::new(Dimension::usd(), 50, Window::DAY);
    let quota = Quota::new().limit(day).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().provider(OPENAI).quota("gpt-4o", quota).clock(clock.clone()).build();
    let spent = spent_in_a_day(
        &limiter.unwrap(),
        &clock,
        &["gpt-4o"],
        &Cost::new().usd(Usd::from_micros(1)),
    );
    assert_eq!(spent, 50);
}

#[test]
fn scope_beside_a_model_admits_its_amount_per_day() {
    for scope in ["tenant:7", "account", "client:alice", "session:1"] {
        for keys in [&[scope][..], &[scope, "gpt-4o"], &["gpt-4o", scope]] {
            let clock = ManualClock::new();
            let limiter = builder()
                .provider(OPENAI)
                .provider(ANTHROPIC)
                .quota("gpt-4o", Quota::new().rpm(500).tpm(100_000))
                .quota("*:*", Quota::new().rpd(100).tpd(1_000))
                .quota("account", Quota::new().rpd(100).tpd(1_000))
                .clock(clock.clone())
                .build()
                .unwrap();
            let by_tokens = spent_in_a_day(&limiter, &clock, keys, &tokens(100));
            assert_eq!(by_tokens, 10, "{keys:?}");
            clock.advance(DAY * MINUTE);
            let by_requests = spent_in_a_day(&limiter, &clock, keys, &tokens(1));
            assert_eq!(by_requests, 100, "{keys:?}");
        }
    }
}

#[test]
fn model_counts_by_its_provider_and_other_keys_by_none() {
    let clock = ManualClock::new();
    let limiter = builder()
        .provider(OPENAI)
        .quota("*", Quota::new().tpm(1_000))
        .quota("gpt-4o*", Quota::new().tpm(1_000))
        .clock(clock.clone())
        .build()
        .unwrap();
    for model in ["gpt-4o", "gpt-4o-2024-08-06", "o1", "gpt-4.1"] {
        assert!(refills(&limiter, &clock, model), "{model}");
    }
    for scope in ["tenant:1", "account", "gpt-4o-unheard-of"] {
        assert!(!refills(&limiter, &clock, scope), "{scope}");
    }
}

#[test]
fn key_of_default_quota_counts_by_provider_if_model() {
    let clock = ManualClock::new();
    let policy = UnknownKey::Quota(Quota::new().tpm(1_000));
    let quotas = builder().provider(AZURE).provider(ANTHROPIC).unknown_key(policy);
    let limiter = quotas.clock(clock.clone()).build().unwrap();
    assert!(!refills(&limiter, &clock, "tenant:1"));
    let quota = Quota::new().tpm(1_000);
    let given = |key: &str| {
        let acquire = limiter.acquire(key, &tokens(500)).limits(&quota);
        acquire.try_now().unwrap();
        clock.advance(MINUTE / 2);
        limiter.stats(key).get(&Dimension::Tokens).unwrap().used
    };
    assert_eq!(given("tenant:2"), 500);
    // Anthropic's bucket of the same amount holds the tokens until the request ends.
    assert!(given("claude-opus-5") < 500);
}

/// OpenRouter limits all models of any vendor that are free together.
#[test]
fn scope_named_free_has_no_limit_of_free_models() {
    let policy = UnknownKey::Quota(Quota::new().rpm(1_000));
    let limiter = builder().provider(OPENROUTER).unknown_key(policy).build().unwrap();
    let cost = Cost::new().requests(60);
    limiter.try_acquire("vendor/model:free", &cost).unwrap_err();
    limiter.try_acquire("plan:free", &cost).unwrap();
}

#[test]
fn added_provider_counts_its_models() {
    let clock = ManualClock::new();
    let limiter = builder().quota("*", Quota::new().tpm(1_000)).clock(clock.clone());
    let limiter = limiter.build().unwrap();
    assert!(!refills(&limiter, &clock, "gpt-4o"));
    limiter.try_acquire("gpt-4o", &tokens(600)).unwrap();
    limiter.try_acquire("tenant:1", &tokens(600)).unwrap();
    limiter.quotas().add_provider(OPENAI).unwrap();
    clock.advance(MINUTE / 2);
    assert_eq!(limiter.stats("gpt-4o").limits[0].used, 100);
    assert_eq!(limiter.stats("tenant:1").limits[0].used, 600);
}
