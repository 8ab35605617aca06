//! d07: the layer in a chain of reqwest-middleware with retries and tracing. Runs
//! `examples/reqwest_middleware.rs`, and a chain that retries a 429.
#![cfg(feature = "reqwest-middleware")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::Extensions;
use paceline::RateLimitLayer;
use paceline::limiter::Limiter;
use paceline::provider::OPENAI;
use paceline::quota::{Algorithm, Quota};
use paceline_simulate::{Settings, SimulatedServer};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use reqwest_tracing::TracingMiddleware;

#[path = "../../../examples/reqwest_middleware.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod example;

async fn bind(settings: Settings) -> (SimulatedServer, String) {
    let server = SimulatedServer::bind(settings, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = format!("http://{}/v1/chat/completions", server.addr());
    (server, url)
}

#[tokio::test]
async fn d07_chain_with_retries_and_tracing_receives_no_429() {
    let (server, url) = bind(example::provider()).await;
    let client = example::chain(super::reqwest_client()).unwrap();
    example::send_all(&client, &url).await.unwrap();
    drop(client);
    let total = server.shutdown().await.unwrap().total;
    assert_eq!((total.admitted, total.failed, total.refused), (20, 2, 0));
}

/// A middleware that counts attempts.
#[derive(Clone, Default)]
struct Attempts(Arc<AtomicU64>);

#[async_trait]
impl Middleware for Attempts {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        self.0.fetch_add(1, Ordering::Relaxed);
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn d07_each_attempt_is_charged_and_a_429_is_retried() {
    // The provider admits one request per two seconds; another client takes the first.
    let settings = Settings::default().with_rpm(30).with_burst(Duration::from_secs(2));
    let (server, url) = bind(settings).await;
    let body =
        r#"{"model": "gpt-4o", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}"#;
    let http = super::reqwest_client();
    assert_eq!(http.post(&url).body(body).send().await.unwrap().status(), 200);

    let quota = Quota::new().rpd(1_000).with_algorithm(Algorithm::TokenBucket);
    let limiter = Limiter::builder().provider(OPENAI).quota("gpt-4o", quota).build().unwrap();
    let attempts = Attempts::default();
    let retries = ExponentialBackoff::builder()
        .retry_bounds(Duration::from_millis(1), Duration::from_millis(2))
        .build_with_max_retries(3);
    let client = ClientBuilder::new(http)
        .with(RetryTransientMiddleware::new_with_policy(retries))
        .with(TracingMiddleware::default())
        .with(RateLimitLayer::new(limiter.clone()))
        .with(attempts.clone())
        .build();
    limiter.key("gpt-4o").unwrap();
    let before = limiter.stats("gpt-4o").limits[0].available;
    let response = client.post(&url).body(body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.bytes().await.unwrap();
    drop(client);

    let total = server.shutdown().await.unwrap().total;
    assert_eq!((total.admitted, total.refused), (2, 1));
    assert_eq!(attempts.0.load(Ordering::Relaxed), 2);
    let taken = before - limiter.stats("gpt-4o").limits[0].available;
    assert_eq!(taken, 2);
}
