//! Metrics have a bounded number of labels and contain no secrets, for any number of keys.

use paceline::limiter::Limiter;
use paceline::quota::{Cost, Dimension, Limit, Quota, Window};
use paceline::telemetry::Metrics;

use super::MetricsExporter;

/// Sends one request for each of this many keys; every other one is refused.
fn flood(limiter: &Limiter, keys: usize, key: impl Fn(usize) -> String) {
    for number in 0..keys {
        let _ = limiter.try_acquire(&key(number), &Cost::new().tokens(number as u64 % 2));
    }
}

#[test]
fn hundred_thousand_keys_make_one_label_per_quota() {
    let builder = Limiter::builder().quota("tenant:*", Quota::new().rpm(1));
    let limiter = builder.quota("gpt-4o", Quota::new().rpm(1)).max_keys(2_000_000).build().unwrap();
    let exporter = MetricsExporter::of(&limiter, Metrics::new());
    flood(&limiter, 50_000, |number| format!("tenant:sk-{number}"));
    flood(&limiter, 50_000, |number| format!("sk-proj-\"}}\n{number}"));
    limiter.try_acquire("gpt-4o", &Cost::new()).unwrap();
    let page = exporter.page();
    let keys: Vec<_> = page.values("paceline_granted_total", "key").into_iter().collect();
    assert_eq!(keys, ["gpt-4o", "other", "tenant:*"]);
    assert_eq!(page.sum("paceline_granted_total", &[]), 100_001.0);
    assert!(page.series() < 200, "{} series", page.series());
}

#[test]
fn keys_with_quotas_have_separate_labels_up_to_max_keys() {
    let builder = (0..1_000).fold(Limiter::builder(), |builder, number| {
        builder.quota(format!("model-{number}"), Quota::new().rpm(10))
    });
    let limiter = builder.build().unwrap();
    let exporter = MetricsExporter::of(&limiter, Metrics::new().with_max_keys(16));
    flood(&limiter, 1_000, |number| format!("model-{number}"));
    let page = exporter.page();
    let labels = |name| page.values(name, "key").len();
    assert_eq!(["paceline_granted_total", "paceline_waiting"].map(labels), [17; 2]);
    // `other` is the label of many keys, whose limits don't add up to one.
    assert_eq!(labels("paceline_capacity"), 16);
    assert_eq!(page.sum("paceline_granted_total", &[]), 1_000.0);
    assert_eq!(page.sum("paceline_granted_total", &[("key", "other")]), 984.0);
}

#[test]
fn names_set_by_caller_are_bounded_by_max_keys() {
    let limiter = Limiter::builder().build().unwrap();
    let metrics = Metrics::new().with_max_keys(8).with_names(|key| Some(key.into()));
    let exporter = MetricsExporter::of(&limiter, metrics);
    flood(&limiter, 10_000, |number| format!("job:{number}"));
    assert_eq!(exporter.page().values("paceline_granted_total", "key").len(), 9);
}

#[test]
fn custom_dimensions_of_requests_are_bounded() {
    let limiter = Limiter::builder().build().unwrap();
    let exporter = MetricsExporter::of(&limiter, Metrics::new());
    for number in 0..1_000 {
        let limit =
            Limit::new(Dimension::custom(&format!("d{number}")), 1, Window::MINUTE).unwrap();
        let cost = Cost::new().custom(&format!("d{number}"), 2);
        let acquire = limiter.acquire("k", &cost).limits(&Quota::new().limit(limit));
        acquire.try_now().unwrap_err();
    }
    let page = exporter.page();
    assert_eq!(page.values("paceline_denied_total", "dimension").len(), 33);
    assert_eq!(page.sum("paceline_denied_total", &[]), 1_000.0);
}
