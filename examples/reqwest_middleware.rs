//! The layer as a middleware of reqwest-middleware, with retries and tracing around it. Each attempt waits
//! for quota and is charged, and transient failures are retried.
//!
//! ```sh
//! cargo run --features reqwest-middleware --example reqwest_middleware
//! ```
//!
//! No API key is needed: the provider is the built-in simulated one, on this machine. It accepts a burst
//! of 10 requests and 10 more per second, and fails every tenth request with status 503. The span of each
//! attempt, from reqwest-tracing, is printed to the terminal.

use std::time::Duration;

use futures_util::future::try_join_all;
use paceline::limiter::{BuildError, Limiter};
use paceline::provider::OPENAI;
use paceline::quota::{Dimension, Limit, Quota};
use paceline::{RateLimitLayer, middleware::Journey};
use paceline_simulate::{Fault, FaultKind, Settings, SimulatedServer};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use reqwest_tracing::TracingMiddleware;
use tracing_subscriber::fmt::format::FmtSpan;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().with_span_events(FmtSpan::CLOSE).init();
    let server = SimulatedServer::bind(provider(), ([127, 0, 0, 1], 0).into()).await?;

    let url = format!("http://{}/v1/chat/completions", server.addr());
    send_all(&chain(reqwest::Client::new())?, &url).await?;

    let stats = server.shutdown().await?.total;
    println!(
        "{} answers, {} faults, {} refused (429)",
        stats.admitted, stats.failed, stats.refused
    );
    Ok(())
}

/// The limits and the failures of the provider.
pub(crate) fn provider() -> Settings {
    let fault = Fault::every(10, FaultKind::Overloaded);
    Settings::default().with_rpm(600).with_burst(Duration::from_secs(1)).with_fault(fault)
}

/// Builds the chain, from the outside in: retries, a span for each attempt, the rate limits.
pub(crate) fn chain(client: reqwest::Client) -> Result<ClientWithMiddleware, BuildError> {
    let requests = Limit::per_minute(Dimension::Requests, 600).map(|limit| limit.with_burst(10));
    let quota = Quota::new().limit(requests);
    let limiter = Limiter::builder().provider(OPENAI).quota("gpt-4o", quota).build()?;
    let bounds = (Duration::from_millis(100), Duration::from_secs(2));
    let retries =
        ExponentialBackoff::builder().retry_bounds(bounds.0, bounds.1).build_with_max_retries(5);
    Ok(ClientBuilder::new(client)
        .with(RetryTransientMiddleware::new_with_policy(retries))
        .with(TracingMiddleware::default())
        .with(RateLimitLayer::new(limiter))
        .build())
}

/// Sends twenty requests concurrently, and prints the charge of the last attempt of each.
pub(crate) async fn send_all(client: &ClientWithMiddleware, url: &str) -> Result<(), Error> {
    try_join_all((1..=20).map(|number| send(client, url, number))).await.map(drop)
}

async fn send(client: &ClientWithMiddleware, url: &str, number: u32) -> Result<(), Error> {
    let body = serde_json::json!({
        "model": "gpt-4o",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": format!("Tell me fact no. {number:02}.")}],
    });
    let journey = Journey::new();
    let request = client.post(url).body(body.to_string()).with_extension(journey.clone());
    request.send().await?.error_for_status()?.bytes().await?;
    println!("no. {number}: {:?}", journey.facts().charged);
    Ok(())
}
