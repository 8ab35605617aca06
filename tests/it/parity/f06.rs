//! Telemetry of a call with several limits: `request_denied{bucket}` and
//! `backpressure_wait{duration_ms}`, with entity and operation.

use std::sync::Arc;

use paceline::limiter::{Event, Limiter, Metadata, TokioClock};
use paceline::quota::{Cost, Quota};
use paceline::telemetry::Metrics;
use tracing::Level;

use super::rig::{buckets, builder, tokens};
use crate::telemetry::{Log, MetricsExporter};

const KEY: &str = "openai-key:call";

/// Returns a limiter without quotas whose metrics are labelled with the keys.
fn limiter_exporter_metadata() -> (Limiter, MetricsExporter, Metadata) {
    let limiter = builder().clock(TokioClock::new()).build().unwrap();
    let exporter = MetricsExporter::of(&limiter, Metrics::new().with_names(|key| Some(key.into())));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    (limiter, exporter, Arc::new([pair("entity", "openai-key"), pair("operation", "call")]))
}

#[tokio::test(start_paused = true)]
async fn f06_denied_request_reports_bucket_entity_and_operation() {
    let (log, _guard) = Log::at(Level::DEBUG);
    let (limiter, exporter, metadata) = limiter_exporter_metadata();
    let mut events = limiter.subscribe();
    let limits = Quota::new().rpm(100).tpm(50);
    let attempt = |cost: Cost| {
        let acquire = limiter.acquire(KEY, &cost).limits(&limits);
        acquire.metadata(Arc::clone(&metadata)).try_now()
    };
    attempt(tokens(40)).unwrap();
    (0..3).for_each(|_| drop(attempt(tokens(20)).unwrap_err()));

    let denied = |event: &Event| matches!(event, Event::Denied { metadata: m, .. } if *m == Some(Arc::clone(&metadata)));
    assert_eq!(std::iter::from_fn(|| events.try_recv().ok()).filter(denied).count(), 3);
    let lines = log.named("denied");
    assert_eq!(lines.len(), 3);
    let expected =
        [("key", KEY), ("dimension", "tokens"), ("entity", "openai-key"), ("operation", "call")];
    for (name, value) in expected {
        assert_eq!(lines[0].field(name), Some(value), "{name}");
    }
    let page = exporter.page();
    let labels = [("key", KEY), ("dimension", "tokens")];
    assert_eq!(page.sum("paceline_denied_total", &labels), 3.0);
    assert_eq!(page.sum("paceline_denied_total", &[]), 3.0);
}

#[tokio::test(start_paused = true)]
async fn f06_wait_reports_duration_entity_and_operation() {
    let (log, _guard) = Log::at(Level::DEBUG);
    let (limiter, exporter, metadata) = limiter_exporter_metadata();
    let limits = buckets(Quota::new().rpm(60).tpm(60));
    let all = Cost::new().requests(60).tokens(60);
    limiter.acquire(KEY, &all).limits(&limits).try_now().unwrap().settle(&all);
    let begin = limiter.now();
    for _ in 0..2 {
        let acquire = limiter.acquire(KEY, &tokens(5)).limits(&limits);
        acquire.metadata(Arc::clone(&metadata)).await.unwrap().settle(&tokens(5));
    }
    assert_eq!((limiter.now() - begin).as_secs(), 10);
    let lines = log.named("waited");
    assert_eq!(lines.len(), 2);
    let duration = lines[0].field("duration_ms").unwrap().parse::<f64>().unwrap();
    assert!((5_000.0..5_010.0).contains(&duration), "{duration}");
    for (name, value) in [("key", KEY), ("entity", "openai-key"), ("operation", "call")] {
        assert_eq!(lines[0].field(name), Some(value), "{name}");
    }
    let page = exporter.page();
    assert_eq!(page.sum("paceline_wait_seconds_count", &[("key", KEY)]), 2.0);
    let seconds = page.sum("paceline_wait_seconds_sum", &[("key", KEY)]);
    assert!((10.0..10.1).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn f06_key_without_quota_is_counted_as_other() {
    let limiter = builder().clock(TokioClock::new()).build().unwrap();
    let exporter = MetricsExporter::of(&limiter, Metrics::new());
    for _ in 0..2 {
        let acquire = limiter.acquire(KEY, &Cost::new()).limits(&Quota::new().rpm(1));
        let _ = acquire.try_now();
    }
    let labels = [("key", "other"), ("dimension", "requests")];
    assert_eq!(exporter.page().sum("paceline_denied_total", &labels), 1.0);
}
