//! Metrics for Prometheus: a job against a provider, and the endpoint that a Prometheus server scrapes.
//!
//! ```sh
//! cargo run --features reqwest,metrics --example prometheus            # runs until Ctrl-C
//! cargo run --features reqwest,metrics --example prometheus -- --once  # runs only the job
//! ```
//!
//! No API key is needed: the provider is the built-in simulated one, on this machine. The daily limit is
//! 50 requests, slightly less with the margin, and the job has 60, so that some are refused.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use paceline::limiter::Limiter;
use paceline::middleware::{RateLimitError, RateLimitLayer};
use paceline::provider::OPENAI;
use paceline::quota::Quota;
use paceline::telemetry::{DURATION_BUCKETS, Metrics, TOKEN_BUCKETS};
use paceline_simulate::{Settings, SimulatedServer};
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let once = std::env::args().any(|argument| argument == "--once");
    let provider = SimulatedServer::bind(Settings::default(), ([127, 0, 0, 1], 0).into()).await?;
    let limiter = limiter()?;
    let page = serve(&limiter).await?;
    println!("http://{page}/metrics");

    let url = format!("http://{}/v1/chat/completions", provider.addr());
    let done = send_all(reqwest::Client::new(), &limiter, &url).await?;
    println!("{} answers with {} tokens, {} refused", done.answers, done.tokens, done.refused);
    if !once {
        tokio::signal::ctrl_c().await?;
    }
    Ok(())
}

pub(crate) fn limiter() -> Result<Limiter, Error> {
    let quota = Quota::new().rpd(50).tpm(1_000_000);
    Ok(Limiter::builder().provider(OPENAI).quota("gpt-4o", quota).build()?)
}

/// Serves the limiter's metrics at `/metrics` on a free local port.
pub(crate) async fn serve(limiter: &Limiter) -> Result<SocketAddr, Error> {
    let exporter = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Prefix("gen_ai.client.token".into()), &TOKEN_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &DURATION_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix(".duration_seconds".into()), &DURATION_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix("_ratio".into()), &[0.5, 0.9, 1.0, 1.1, 2.0, 5.0])?
        .build_recorder();
    let page = exporter.handle();
    // A program with other metrics installs the exporter as its global recorder instead of calling
    // `with_recorder`.
    let meter = Arc::new(Metrics::new().with_recorder(exporter).install(limiter));
    let render = move || {
        meter.sample();
        page.run_upkeep();
        ready(([("content-type", "text/plain; version=0.0.4")], page.render()))
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let addr = listener.local_addr()?;
    let app = Router::new().route("/metrics", get(render));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(addr)
}

/// The result of the job.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) answers: u64,
    pub(crate) refused: u64,
    /// The total tokens that the answers report.
    pub(crate) tokens: u64,
}

/// Sends sixty chat requests, which are rejected instead of waiting for the next day.
pub(crate) async fn send_all(
    client: reqwest::Client,
    limiter: &Limiter,
    url: &str,
) -> Result<Done, Error> {
    let client = RateLimitLayer::new(limiter.clone()).reject().layer(client);
    let mut answers = JoinSet::new();
    for number in 1..=60 {
        let body = serde_json::json!({
            "model": "gpt-4o",
            "max_tokens": 500,
            "messages": [{"role": "user", "content": format!("Tell me fact no. {number:02}.")}],
        });
        let mut request = reqwest::Request::new(reqwest::Method::POST, url.parse()?);
        *request.body_mut() = Some(body.to_string().into());
        answers.spawn(client.clone().oneshot(request));
    }
    let mut done = Done::default();
    while let Some(answer) = answers.join_next().await {
        match answer? {
            Ok(answer) => {
                let answer = answer.error_for_status()?.bytes().await?;
                let answer: serde_json::Value = serde_json::from_slice(&answer)?;
                done.answers += 1;
                done.tokens += answer["usage"]["total_tokens"].as_u64().unwrap_or(0);
            }
            Err(RateLimitError::Limited(_)) => done.refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}
