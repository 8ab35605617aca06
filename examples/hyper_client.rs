//! The layer around hyper-util's client, which takes `http` requests and returns hyper bodies.
//!
//! ```sh
//! cargo run --features hyper-util --example hyper_client
//! ```
//!
//! No API key is needed: the provider is the built-in simulated one, on this machine. It accepts a burst
//! of 10 requests and 10 more per second, so the twenty requests take about two seconds. For a real
//! provider, use a connector with TLS, such as hyper-rustls.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use paceline::limiter::Limiter;
use paceline::middleware::RateLimitLayer;
use paceline::provider::OPENAI;
use paceline::quota::{Dimension, Limit, Quota};
use paceline_simulate::{Settings, SimulatedServer};
use tower::{Layer, ServiceExt};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let server = SimulatedServer::bind(provider(), ([127, 0, 0, 1], 0).into()).await?;
    let bytes = send_all(&format!("http://{}/v1/chat/completions", server.addr())).await?;

    let stats = server.shutdown().await?.total;
    println!(
        "{} answers of {bytes} bytes in total, {} refused (429)",
        stats.admitted, stats.refused
    );
    Ok(())
}

/// The limits that the provider enforces.
pub(crate) fn provider() -> Settings {
    Settings::default().with_rpm(600).with_burst(Duration::from_secs(1))
}

/// Sends twenty requests concurrently, every second one for a stream. Returns the total bytes of the
/// responses.
pub(crate) async fn send_all(url: &str) -> Result<usize, Error> {
    let requests = Limit::per_minute(Dimension::Requests, 600).map(|limit| limit.with_burst(10));
    let quota = Quota::new().limit(requests);
    let limiter = Limiter::builder().provider(OPENAI).quota("gpt-4o", quota).build()?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let client = RateLimitLayer::new(limiter).layer(client);

    let answers = (1..=20).map(|number| {
        let client = client.clone();
        async move {
            let body = serde_json::json!({
                "model": "gpt-4o",
                "max_tokens": 100,
                "stream": number % 2 == 0,
                "messages": [{"role": "user", "content": format!("Tell me fact no. {number}.")}],
            });
            let request = Request::post(url).body(Full::from(body.to_string()))?;
            let answer = client.oneshot(request).await?;
            Ok::<_, Error>(answer.into_body().collect().await?.to_bytes().len())
        }
    });
    Ok(try_join_all(answers).await?.into_iter().sum())
}
