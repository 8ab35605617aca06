//! Metrics of provider calls, named by OpenTelemetry's conventions.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use paceline::limiter::{Limiter, TokioClock};
use paceline::middleware::RateLimitLayer;
use paceline::provider::OPENAI;
use paceline::quota::{Margin, Quota};
use paceline::telemetry::Metrics;
use tower::{Layer, ServiceExt, service_fn};

use super::MetricsExporter;

const USAGE: &str = r#"{"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 9}}"#;

fn limiter_and_exporter() -> (Limiter, MetricsExporter) {
    let builder = Limiter::builder().margin(Margin::NONE).clock(TokioClock::new());
    let quota = Quota::new().rpm(500).tpm(30_000);
    let limiter = builder.provider(OPENAI).quota("m", quota).build().unwrap();
    let exporter = MetricsExporter::of(&limiter, Metrics::new());
    (limiter, exporter)
}

/// Sends a chat request whose response takes two seconds. A status of 0 breaks the connection.
async fn send(limiter: &Limiter, model: &str, status: u16, body: &'static str) {
    let answer = move |_: Request<String>| async move {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let response = Response::builder().status(status).body(Full::<Bytes>::from(body));
        response.map_err(|_| std::io::Error::other("broken"))
    };
    let body = serde_json::json!({"model": model, "messages": [], "max_tokens": 50}).to_string();
    let request = Request::post("/v1/chat/completions").body(body).unwrap();
    let client = RateLimitLayer::new(limiter.clone()).layer(service_fn(answer));
    if let Ok(response) = client.oneshot(request).await {
        response.into_body().collect().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn token_usage_and_duration_follow_otel_conventions() {
    let (limiter, exporter) = limiter_and_exporter();
    send(&limiter, "m", 200, USAGE).await;
    send(&limiter, "m", 200, USAGE).await;
    let page = exporter.page();
    let labels = |kind| {
        let model = ("gen_ai_request_model", "m");
        let (operation, provider) = ("gen_ai_operation_name", "gen_ai_provider_name");
        [model, (operation, "chat"), (provider, "openai"), ("gen_ai_token_type", kind)]
    };
    assert_eq!(page.sum("gen_ai_client_token_usage_sum", &labels("input")), 24.0);
    assert_eq!(page.sum("gen_ai_client_token_usage_sum", &labels("output")), 18.0);
    let seconds = page.sum("gen_ai_client_operation_duration_seconds_sum", &labels("output")[..3]);
    assert!((4.0..4.1).contains(&seconds), "{seconds}");
    assert_eq!(page.kind("gen_ai_client_operation_duration_seconds"), Some("histogram"));
    assert!(page.values("gen_ai_client_operation_duration_seconds_count", "error_type").is_empty());
}

#[tokio::test(start_paused = true)]
async fn failed_call_has_error_type_and_no_token_usage() {
    let (limiter, exporter) = limiter_and_exporter();
    send(&limiter, "m", 500, "{}").await;
    send(&limiter, "m", 0, "").await;
    send(&limiter, "m", 429, "{}").await;
    let page = exporter.page();
    let kinds: Vec<_> = page
        .values("gen_ai_client_operation_duration_seconds_count", "error_type")
        .into_iter()
        .collect();
    assert_eq!(kinds, ["429", "500", "_OTHER"]);
    assert_eq!(page.sum("gen_ai_client_token_usage_count", &[]), 0.0);
    assert_eq!(page.sum("paceline_cooling_down_total", &[("key", "m")]), 1.0);
}

#[tokio::test(start_paused = true)]
async fn model_without_quota_is_labelled_other() {
    let (limiter, exporter) = limiter_and_exporter();
    send(&limiter, "sk-hostile", 200, USAGE).await;
    send(&limiter, "gpt-4o-2024-08-06", 200, USAGE).await;
    let page = exporter.page();
    let models =
        page.values("gen_ai_client_operation_duration_seconds_count", "gen_ai_request_model");
    assert!(models.contains("other") && models.len() == 2, "{models:?}");
    assert!(!models.contains("sk-hostile"));
}

#[tokio::test(start_paused = true)]
async fn service_without_provider_records_no_operation() {
    let (limiter, exporter) = limiter_and_exporter();
    let answer = service_fn(|tokens: u64| std::future::ready(Ok::<_, Infallible>(tokens)));
    let client = RateLimitLayer::new(limiter)
        .classify(|_: &u64| paceline::middleware::Classified::new("m", paceline::Cost::new()))
        .observe(|_: &u64| None)
        .layer(answer);
    client.oneshot(7).await.unwrap();
    let page = exporter.page();
    assert_eq!(page.sum("gen_ai_client_operation_duration_seconds_count", &[]), 0.0);
    assert_eq!(page.sum("paceline_granted_total", &[]), 1.0);
}
