use std::time::Duration;

use paceline::limiter::{Priority, Reduction, UnknownKey, WaitPolicy};
use paceline::provider::account_limits::AccountLimits;
use paceline::provider::{ANTHROPIC, OPENAI};
use paceline::quota::{
    Algorithm, Calendar, Dimension, Limit, Margin, Period, Quota, Share, Usage, Usd, Window,
};
use paceline_config::ClusterConfig;

use super::parse_valid;

fn quota(fields: &str) -> Quota {
    parse_valid(&format!("quotas: {{'a*': {{{fields}}}}}")).quotas.remove(0).quota
}

#[test]
fn short_forms_equal_library_quotas() {
    let short = quota("rpm: 1, tpm: 2, rpd: 3, tpd: 4, itpm: 5, otpm: 6, concurrency: 7");
    let own = Quota::new().rpm(1).tpm(2).rpd(3).tpd(4).itpm(5).otpm(6).concurrency(7);
    assert_eq!(short, own);
    assert_eq!(quota("rpm: 0, tpm: 5"), Quota::new().tpm(5));
    assert_eq!(quota("rpm: 5, shared: true"), Quota::new().rpm(5).shared());
    assert!(quota("").is_unlimited());
}

#[test]
fn full_limit_sets_window_and_algorithm() {
    let one = |fields: &str| quota(&format!("limits: [{{{fields}}}]")).limits()[0].clone();
    let tokens = |amount, length| {
        let window = Window::new(Duration::from_millis(length)).unwrap();
        Limit::new(Dimension::Tokens, amount, window).unwrap()
    };
    assert_eq!(one("dimension: tokens, limit: 5, window: 1500ms"), tokens(5, 1_500));
    assert_eq!(one("dimension: tokens, limit: 5, window: 1h30m"), tokens(5, 5_400_000));
    assert_eq!(
        one("dimension: tokens, limit: 5, window: 1d, debt: true"),
        tokens(5, 86_400_000).with_debt()
    );
    for (name, algorithm) in [
        ("token_bucket", Algorithm::TokenBucket),
        ("sliding_window", Algorithm::SlidingWindow),
        ("fixed_window", Algorithm::FixedWindow),
        ("clock_window", Algorithm::ClockWindow),
    ] {
        let text = format!("dimension: tokens, limit: 5, window: 60s, algorithm: {name}");
        assert_eq!(one(&text), tokens(5, 60_000).with_algorithm(algorithm));
    }
    let text = "dimension: tokens, limit: 5, window: 60s, burst: 9";
    assert_eq!(one(text), tokens(5, 60_000).with_burst(9));
    assert_eq!(
        one("dimension: images, limit: 5, window: 1d").dimension(),
        &Dimension::custom("images")
    );
    let flight = one("dimension: concurrency, limit: 5");
    assert_eq!(Quota::new().limit(flight), Quota::new().concurrency(5));
}

#[test]
fn calendar_windows_use_configured_zone() {
    for (name, period) in [("day", Period::Day), ("week", Period::Week), ("month", Period::Month)] {
        let limits = format!(
            "limits: [{{dimension: requests, limit: 5, window: {name}, zone: Asia/Tokyo}}]"
        );
        let calendar = Calendar::new(period, "Asia/Tokyo").unwrap();
        assert_eq!(quota(&limits), Quota::new().on_calendar(Dimension::Requests, 5, &calendar));
    }
}

#[test]
fn algorithm_and_share_apply_to_all_limits_of_quota() {
    let fixed = quota("rpm: 10, algorithm: fixed_window");
    assert_eq!(fixed, Quota::new().rpm(10).with_algorithm(Algorithm::FixedWindow));
    let half = Quota::new().rpm(10).tpm(101).with_share(Share::percent(50).unwrap());
    assert_eq!(quota("rpm: 10, tpm: 101, share: 0.5"), half);
    assert_eq!([half.limits()[0].amount(), half.limits()[1].amount()], [5, 50]);
    let limiter = parse_valid("share: 0.5\nquotas: {a: {rpm: 10}}").builder().build().unwrap();
    assert_eq!(limiter.quotas().of("a").limits()[0].amount(), 5);
}

#[test]
fn margin_of_quota_replaces_margin_of_file() {
    assert_eq!(
        quota("rpm: 10, margin: {percent: 0, lag: 0s}"),
        Quota::new().rpm(10).with_margin(Margin::NONE)
    );
    let config = parse_valid("margin: {lag: 1s}\nquotas: {a: {rpm: 10}}");
    assert_eq!(config.margin, Margin::new(2, Duration::from_secs(1)).unwrap());
    assert_eq!(config.quotas[0].quota.margin(), None);
}

#[test]
fn unknown_key_accepts_policies_and_quota() {
    let policy = |text: &str| parse_valid(&format!("unknown_key: {text}")).unknown_key;
    assert_eq!(policy("allow"), UnknownKey::Allow);
    assert_eq!(policy("refuse"), UnknownKey::Refuse);
    assert_eq!(policy("learn"), UnknownKey::Learn);
    assert_eq!(policy("{rpm: 60}"), UnknownKey::Quota(Quota::new().rpm(60)));
}

#[test]
fn section_fields_left_out_have_defaults() {
    assert_eq!(parse_valid("store: {yaml: a}").store.unwrap().flush, Duration::from_secs(1));
    let cluster = parse_valid("cluster: {redis: 'redis://h', account: a}").cluster.unwrap();
    assert_eq!(cluster.timeout, Duration::from_millis(50));
    let example = parse_valid(super::EXAMPLE).cluster.unwrap();
    let rest = |cluster: &ClusterConfig| {
        let ClusterConfig { mode, on_failure, timeout, spread, lease, reservation_ttl, .. } =
            cluster;
        (*mode, *on_failure, *timeout, *spread, *lease, *reservation_ttl)
    };
    assert_eq!(rest(&cluster), rest(&example), "the example shows the defaults");
    let reduction = parse_valid("reduction: {factor: 0.7}").reduction;
    assert_eq!(reduction, paceline::limiter::Reduction::new().factor(0.7));
    assert_eq!(
        parse_valid("reduction: {enabled: false}").reduction,
        paceline::limiter::Reduction::OFF
    );
}

#[test]
fn waiting_section_sets_order_of_queues() {
    let text = "waiting: {bands: {'b*': batch, a: interactive, c: normal, d: -7}, fair_by: tenant,
        weights: {'tenant:gold': 2}, max_starvation: 5s}";
    let waiting = parse_valid(text).waiting;
    let bands: Vec<_> =
        waiting.bands.iter().map(|(keys, band)| (&keys[..], band.level())).collect();
    assert_eq!(bands, [("b*", -10), ("a", 10), ("c", 0), ("d", -7)]);
    let policy = WaitPolicy::new()
        .priority("b*", Priority::BATCH)
        .priority("a", Priority::INTERACTIVE)
        .priority("c", Priority::NORMAL)
        .priority("d", Priority::new(-7))
        .fair_by("tenant")
        .weight("tenant:gold", 2)
        .max_starvation(Duration::from_secs(5));
    assert_eq!(waiting.policy(), policy);
    assert_eq!(parse_valid("{}").waiting.policy(), WaitPolicy::new());
    assert_eq!(quota("weight: 2"), Quota::new().with_weight(2));
}

#[test]
fn longest_wait_of_file_may_be_unlimited() {
    let bound = |text, default| parse_valid(text).waiting.max_wait_or(default);
    let (four, two) = (Some(Duration::from_secs(240)), Some(Duration::from_secs(120)));
    assert_eq!((bound("{}", None), bound("{}", four)), (None, four));
    assert_eq!(bound("waiting: {max_wait: 2m}", four), two);
    assert_eq!(bound("waiting: {max_wait: unlimited}", four), None);
}

#[test]
fn quota_of_file_bounds_its_wait() {
    assert_eq!(quota("rpm: 1").longest_wait(), None);
    assert_eq!(quota("mode: wait"), Quota::new());
    assert_eq!(quota("max_wait: 10s"), Quota::new().max_wait(Duration::from_secs(10)));
    assert_eq!(quota("mode: wait, max_wait: 10s"), quota("max_wait: 10s"));
    for rejects in ["mode: reject", "max_wait: 0s", "mode: reject, max_wait: 0s"] {
        assert_eq!(quota(rejects), Quota::new().reject(), "{rejects}");
    }
}

#[test]
fn reduction_of_file_may_be_adaptive() {
    let adaptive = parse_valid("reduction: {adaptive: true, probe_retry_after: false}").reduction;
    assert_eq!(adaptive, Reduction::ADAPTIVE.probe_retry_after(false));
    assert_eq!(parse_valid("reduction: {adaptive: true}").reduction, Reduction::ADAPTIVE);
    assert_eq!(parse_valid("{}").reduction, Reduction::ADAPTIVE);
    assert_eq!(parse_valid("reduction: {}").reduction, Reduction::new());
}

#[test]
fn money_is_in_dollars() {
    let ten_minutes = Window::new(Duration::from_secs(600)).unwrap();
    let limit = Limit::new(Dimension::usd(), 2_500_000, ten_minutes).unwrap();
    assert_eq!(quota("usd_per_day: 0.25"), Quota::new().usd_per_day(Usd::from_micros(250_000)));
    let text = "limits: [{dimension: usd, limit: 2.5, window: 10m, burst: 0.000001}]";
    assert_eq!(quota(text), Quota::new().limit(limit.with_burst(1)));
    assert_eq!(quota("usd_per_day: 0"), Quota::new());
}

#[test]
fn prices_section_sets_prices() {
    let folder = tempfile::tempdir().unwrap();
    let row = r#"{"a": {"input_cost_per_token": 1e-6}, "b": {"input_cost_per_token": 2e-6}}"#;
    std::fs::write(folder.path().join("prices.json"), row).unwrap();
    let path = folder.path().join("paceline.yaml");
    let text = "prices: {file: prices.json, models: {b: {input: 0.5, output: 2, cache_read: 0.1}}}";
    std::fs::write(&path, text).unwrap();
    let prices = paceline_config::check(&path).unwrap().config.prices.current();
    let cost = |model| {
        let usage = Usage { input: 20, output: 5, cache_read: 10, ..Usage::default() };
        prices.of(OPENAI, model).map(|price| price.cost(&usage))
    };
    assert_eq!((cost("a"), cost("b"), cost("c")), (Some(20), Some(16), None));
    assert!(cost("gpt-4o").is_some(), "built-in prices remain");
}

#[test]
fn bounds_of_file_are_within_bounds_of_limiter() {
    for text in [
        "reduction: {factor: 0.000001, recovery_factor: 1.01, recovery_interval: 1s}",
        "reduction: {factor: 0.999999, recovery_factor: 1000, recovery_interval: 366d, spread: 366d}",
        "margin: {percent: 99, lag: 1h}",
        "waiting: {max_waiting: 4294967295}",
        "waiting: {max_waiting: 0, max_wait: 0s}",
        "share: 0.0000001",
    ] {
        parse_valid(text).builder().build().unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn limits_from_provider_name_the_accounts_to_read() {
    let text = "providers: [{name: anthropic, limits_from: provider, refresh: 1m}, \
                {name: openai, limits_from: provider, project: proj_abc}]";
    let config = parse_valid(text);
    assert_eq!(config.providers, [ANTHROPIC, OPENAI]);
    let mut anthropic = AccountLimits::new(ANTHROPIC, None).unwrap();
    anthropic.refresh = Duration::from_secs(60);
    let openai = AccountLimits::new(OPENAI, Some("proj_abc")).unwrap();
    assert_eq!(config.account_limits, [anthropic, openai]);
}
