//! Values of the metrics.

use paceline::limiter::{
    KeySnapshot, LearnedLimit, Limiter, ManualClock, Measured, Measurement, RateLimited,
};
use paceline::provider::UtilizationReading;
use paceline::quota::{Cost, Dimension, Margin, Quota, Usd};
use paceline::telemetry::Metrics;
use paceline_limiter::seam;
use std::time::Duration;

use super::MetricsExporter;

const KEY: &[(&str, &str)] = &[("key", "k")];

fn limiter_clock_exporter(quota: Quota) -> (Limiter, ManualClock, MetricsExporter) {
    let clock = ManualClock::new();
    let builder = Limiter::builder().margin(Margin::NONE).clock(clock.clone());
    let limiter = builder.quota("k", quota).build().unwrap();
    let exporter = MetricsExporter::of(&limiter, Metrics::new());
    (limiter, clock, exporter)
}

#[test]
fn reserved_and_charged_tokens_are_separate_counters() {
    let (limiter, _clock, exporter) = limiter_clock_exporter(Quota::new().rpm(10).tpm(1_000));
    let take = |tokens| limiter.try_acquire("k", &Cost::new().tokens(tokens)).unwrap();
    take(100).settle(&Cost::new().tokens(50));
    take(100).settle(&Cost::new().tokens(400));
    take(100).release();
    drop(take(30));
    let page = exporter.page();
    assert_eq!(page.sum("paceline_granted_total", KEY), 4.0);
    assert_eq!(page.sum("paceline_settled_total", KEY), 3.0);
    assert_eq!(page.sum("paceline_released_total", KEY), 1.0);
    assert_eq!(page.sum("paceline_reserved_tokens_total", KEY), 230.0);
    assert_eq!(page.sum("paceline_charged_tokens_total", KEY), 480.0);
    assert_eq!(page.sum("paceline_estimate_ratio_count", KEY), 3.0);
    assert_eq!(page.sum("paceline_estimate_ratio_sum", KEY), 2.0 + 0.25 + 1.0);
}

#[test]
fn gauges_equal_limiter_stats() {
    let (limiter, _clock, exporter) =
        limiter_clock_exporter(Quota::new().rpm(10).tpm(1_000).concurrency(4));
    let permit = limiter.try_acquire("k", &Cost::new().tokens(70)).unwrap();
    let _other = limiter.try_acquire("k", &Cost::new().tokens(30)).unwrap();
    permit.settle(&Cost::new().tokens(70));
    let page = exporter.page();
    let tokens = [("key", "k"), ("dimension", "tokens"), ("window_seconds", "60")];
    let in_flight = [("key", "k"), ("dimension", "concurrency")];
    assert_eq!(page.sum("paceline_capacity", &tokens), 1_000.0);
    for limit in &limiter.stats("k").limits {
        let of = [("dimension", limit.dimension.as_str())];
        assert_eq!(page.sum("paceline_used", &of), limit.used as f64, "{}", limit.dimension);
        assert_eq!(page.sum("paceline_held", &of), limit.held as f64, "{}", limit.dimension);
    }
    assert_eq!(page.sum("paceline_held", &tokens), 30.0);
    assert_eq!(page.sum("paceline_held", &in_flight), 1.0);
    assert_eq!(page.sum("paceline_capacity", &in_flight), 4.0);
}

#[test]
fn gauges_of_money_are_in_dollars() {
    let (limiter, _clock, exporter) =
        limiter_clock_exporter(Quota::new().usd_per_day(Usd::from_dollars(50)));
    let cost = |micro_dollars| Cost::new().custom("usd", micro_dollars);
    limiter.try_acquire("k", &cost(12_500_000)).unwrap().settle(&cost(12_500_001));
    let _open = limiter.try_acquire("k", &cost(250_000)).unwrap();
    let page = exporter.page();
    let money = [("key", "k"), ("dimension", "usd"), ("window_seconds", "86400")];
    assert_eq!(page.sum("paceline_capacity", &money), 50.0);
    assert_eq!(page.sum("paceline_used", &money), 12.500_001);
    assert_eq!(page.sum("paceline_held", &money), 0.25);
}

#[test]
fn learned_limits_are_gauges() {
    let (limiter, _clock, exporter) = limiter_clock_exporter(Quota::new().rpm(600));
    let mut key = KeySnapshot::new("k", Vec::new());
    key.learned = vec![LearnedLimit::new(Dimension::Requests, 0.5, limiter.now(), 3)];
    limiter.state().absorb(&[key]);
    let of = [("key", "k"), ("dimension", "requests")];
    assert_eq!(exporter.page().sum("paceline_learned_limit", &of), 0.5);
    limiter.reset("k");
    assert_eq!(exporter.page().sum("paceline_learned_limit", &of), 0.0);
}

#[test]
fn utilization_of_windows_is_a_gauge() {
    let (limiter, _clock, exporter) = limiter_clock_exporter(Quota::new().rpm(600));
    let permit = limiter.try_acquire("k", &Cost::new()).unwrap();
    permit.observe_utilization(&[UtilizationReading::new("5h", 0.42)]);
    let of = [("key", "k"), ("window", "5h")];
    assert_eq!(exporter.page().sum("paceline_utilization_ratio", &of), 0.42);
}

#[test]
fn gauges_of_pruned_keys_are_zero() {
    let clock = ManualClock::new();
    let builder = Limiter::builder().margin(Margin::NONE).clock(clock.clone());
    let limiter = builder.quota("tenant:*", Quota::new().rpm(10)).build().unwrap();
    let exporter = MetricsExporter::of(&limiter, Metrics::new());
    drop(limiter.try_acquire("tenant:1", &Cost::new()).unwrap());
    assert_eq!(exporter.page().sum("paceline_used", &[("key", "tenant:*")]), 1.0);
    clock.advance(Duration::from_secs(61));
    limiter.state().prune();
    assert_eq!(exporter.page().sum("paceline_used", &[("key", "tenant:*")]), 0.0);
}

/// Two models of 20 and 30 requests per second don't have a limit of 50.
#[test]
fn limits_of_keys_with_one_label_are_not_added_up() {
    let builder = Limiter::builder().margin(Margin::NONE).clock(ManualClock::new());
    let limiter = builder.quota("gpt-*", Quota::new().rpm(6_000).concurrency(9)).build().unwrap();
    let named = Metrics::new().with_names(|key| Some(key.into()));
    let (exporter, of_each) =
        (MetricsExporter::of(&limiter, Metrics::new()), MetricsExporter::of(&limiter, named));
    let learn = |key: &str, amount| {
        drop(limiter.try_acquire(key, &Cost::new()).unwrap());
        let mut stored = KeySnapshot::new(key, Vec::new());
        stored.learned = vec![LearnedLimit::new(Dimension::Requests, amount, limiter.now(), 3)];
        limiter.state().absorb(&[stored]);
    };
    let of = |exporter: &MetricsExporter, key: &str| {
        let labels = [("key", key), ("dimension", "requests")];
        let page = exporter.page();
        ["paceline_learned_limit", "paceline_capacity", "paceline_used"]
            .map(|name| page.sum(name, &labels))
    };
    let in_flight = |exporter: &MetricsExporter, key: &str| {
        exporter.page().sum("paceline_held", &[("key", key), ("dimension", "concurrency")])
    };
    let _permit = limiter.try_acquire("gpt-a", &Cost::new()).unwrap();
    learn("gpt-a", 20.0);
    assert_eq!(of(&exporter, "gpt-*"), [20.0, 6_000.0, 2.0]);
    assert_eq!(in_flight(&exporter, "gpt-*"), 1.0);
    learn("gpt-b", 30.0);
    assert_eq!(of(&exporter, "gpt-*"), [0.0; 3]);
    assert_eq!([&exporter, &of_each].map(|of| in_flight(of, "gpt-*")), [0.0; 2]);
    assert_eq!(in_flight(&of_each, "gpt-a"), 1.0);
    assert_eq!(of(&of_each, "gpt-a"), [20.0, 6_000.0, 2.0]);
    assert_eq!(of(&of_each, "gpt-b"), [30.0, 6_000.0, 1.0]);
    // The limit of one of two keys isn't that of the label either.
    limiter.reset("gpt-a");
    assert_eq!(of(&exporter, "gpt-*")[0], 0.0);
}

#[tokio::test]
async fn waiting_requests_are_a_gauge() {
    let (limiter, _clock, exporter) = limiter_clock_exporter(Quota::new().rpm(1));
    limiter.try_acquire("k", &Cost::new()).unwrap();
    let mut waiting = [limiter.acquire("k", &Cost::new()), limiter.acquire("k", &Cost::new())];
    waiting.iter_mut().for_each(|acquire| assert!(acquire.arrive().is_none()));
    assert_eq!(exporter.page().sum("paceline_waiting", KEY), 2.0);
    drop(waiting);
    assert_eq!(exporter.page().sum("paceline_waiting", KEY), 0.0);
}

#[test]
fn refusals_reductions_and_recoveries_are_counted() {
    let (limiter, clock, exporter) = limiter_clock_exporter(Quota::new().rpm(100));
    let refusal = RateLimited::new(Some(Duration::from_secs(1)));
    limiter.feedback().rate_limited("k", &refusal);
    limiter.feedback().rate_limited("k", &refusal);
    let page = exporter.page();
    assert_eq!(page.sum("paceline_cooling_down_total", KEY), 2.0);
    assert_eq!(page.sum("paceline_reduced_total", KEY), 1.0);
    assert_eq!(page.sum("paceline_capacity", KEY), 50.0);
    clock.advance(Duration::from_secs(3_600));
    limiter.try_acquire("k", &Cost::new()).unwrap();
    let page = exporter.page();
    assert_eq!(page.sum("paceline_recovered_total", KEY), 1.0);
    assert_eq!(page.sum("paceline_capacity", KEY), 100.0);
}

/// A component that counts 3 flushes more at each call, and one of 2 ms.
#[derive(Debug, Default)]
struct Measuring(std::sync::atomic::AtomicU64, bool);

impl paceline::limiter::Attached for Measuring {
    fn close(&self) -> paceline::limiter::Closing {
        Box::pin(std::future::ready(()))
    }

    fn measurements(&self) -> Vec<Measurement> {
        let total = 3 + self.0.fetch_add(3, std::sync::atomic::Ordering::Relaxed);
        vec![
            Measurement::new("paceline_store_flushes_total", Measured::Total(total)),
            Measurement::new("paceline_store_pending_keys", Measured::Amount(total)),
            Measurement::new("paceline_cluster_degraded_total", Measured::Total(total))
                .with_label("open"),
            Measurement::new("paceline_bus_connected", Measured::Flag(self.1)),
            Measurement::new("unknown", Measured::Total(1)),
        ]
    }

    fn end(&self, _: Vec<paceline::limiter::KeyChanges>) {}
}

#[test]
fn components_report_totals_and_amounts() {
    let (limiter, _clock, exporter) = limiter_clock_exporter(Quota::new().rpm(100));
    seam::attach(&limiter, std::sync::Arc::new(Measuring::default()));
    for total in [3.0, 6.0] {
        let page = exporter.page();
        assert_eq!(page.sum("paceline_store_flushes_total", &[]), total);
        assert_eq!(page.sum("paceline_store_pending_keys", &[]), total);
        assert_eq!(page.sum("paceline_cluster_degraded_total", &[("policy", "open")]), total);
        assert_eq!(page.kind("paceline_store_flushes_total"), Some("counter"));
        assert_eq!(page.kind("paceline_store_pending_keys"), Some("gauge"));
        assert_eq!(page.kind("unknown"), None);
    }
}

#[test]
fn values_of_several_components_are_combined() {
    let (limiter, _clock, exporter) = limiter_clock_exporter(Quota::new().rpm(100));
    let component = |is_connected| std::sync::Arc::new(Measuring(0.into(), is_connected));
    seam::attach(&limiter, component(true));
    assert_eq!(exporter.page().sum("paceline_bus_connected", &[]), 1.0);
    seam::attach(&limiter, component(true));
    assert_eq!(exporter.page().sum("paceline_bus_connected", &[]), 1.0);
    seam::attach(&limiter, component(false));
    let page = exporter.page();
    assert_eq!(page.sum("paceline_bus_connected", &[]), 0.0);
    assert_eq!(page.sum("paceline_store_flushes_total", &[]), 9.0 + 6.0 + 3.0);
    assert_eq!(page.sum("paceline_store_pending_keys", &[]), 18.0);
}

#[test]
fn metrics_use_global_recorder_by_default() {
    let exporter = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = exporter.handle();
    metrics::with_local_recorder(&exporter, || {
        let limiter = Limiter::builder().quota("k", Quota::new().rpm(1)).build().unwrap();
        let _meter = Metrics::new().install(&limiter);
        limiter.try_acquire("k", &Cost::new()).unwrap();
    });
    assert_eq!(super::MetricsPage::parse(&handle.render()).sum("paceline_granted_total", KEY), 1.0);
}
