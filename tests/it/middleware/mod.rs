//! The Tower layer around test services and around reqwest.

mod backpressure;
mod body;
mod budgets;
mod budgets_most;
mod buffer_body;
mod call;
mod circuit;
mod circuit_backend;
#[cfg(feature = "reqwest-middleware")]
mod circuit_clients;
mod compose;
mod custom_service;
mod cut_streams;
mod discover;
mod disruptions;
mod errors;
mod failures;
mod forgotten;
mod forgotten_random;
mod gate;
mod include_usage;
mod inner;
mod journey;
mod keys;
mod kinds;
mod model_budgets;
mod money;
mod one_request;
mod quota_waits;
mod refusals;
mod retry;
mod settling;
mod spend_limit;
mod spending;
mod turns;
mod units;
mod usage_chunk;
mod wiring;

#[cfg(feature = "reqwest")]
mod example;
#[cfg(feature = "reqwest")]
mod extensions;
#[cfg(all(feature = "reqwest-middleware", feature = "axum"))]
mod in_flight;
#[cfg(feature = "reqwest")]
mod proxy;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "reqwest-middleware")]
mod reqwest_middleware;
#[cfg(feature = "axum")]
mod respond;
#[cfg(feature = "reqwest-middleware")]
mod unsent;
mod utilization;

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use paceline::limiter::{Builder, Limiter, Reduction, TokioClock};
use paceline::middleware::{Classified, RateLimitLayer, RateLimitService, ResponseBody};
use paceline::quota::{Algorithm, Cost, Margin, Quota};
use tower::{Layer, Service, ServiceExt};

use self::inner::{Frames, InnerError, Strict};

/// One second in nanoseconds.
const S: Duration = Duration::from_secs(1);

/// Returns a builder without margin, on tokio's paused clock.
fn builder() -> Builder {
    Limiter::builder().margin(Margin::NONE).reduction(Reduction::OFF).clock(TokioClock::new())
}

/// Returns a limiter with one key `k` and this quota as a token bucket.
fn limiter(quota: Quota) -> Limiter {
    builder().quota("k", quota.with_algorithm(Algorithm::TokenBucket)).build().unwrap()
}

type Tokens = RateLimitLayer<fn(&u64) -> Classified, fn(&u64) -> Option<Cost>>;

/// Returns a layer whose requests are a number of tokens of `k`, charged as reserved.
fn tokens(limiter: &Limiter) -> Tokens {
    RateLimitLayer::new(limiter.clone())
        .classify((|tokens: &u64| Classified::new("k", Cost::new().tokens(*tokens))) as _)
        .observe((|_: &u64| None) as _)
}

/// Returns a service that returns each number unchanged.
fn echo() -> Strict<u64, u64> {
    Strict::new(|tokens| async move { Ok(tokens) })
}

/// Returns true if the service is ready now.
async fn is_ready<S, R>(service: &mut S) -> bool
where
    S: Service<R>,
{
    poll_fn(|cx| std::task::Poll::Ready(service.poll_ready(cx).is_ready())).await
}

/// Returns the amounts available in each limit of the key.
fn available(limiter: &Limiter, key: &str) -> Vec<u64> {
    limiter.stats(key).limits.iter().map(|limit| limit.available).collect()
}

/// Returns the amounts held in each limit of the key.
fn held(limiter: &Limiter, key: &str) -> Vec<u64> {
    limiter.stats(key).limits.iter().map(|limit| limit.held).collect()
}

/// Returns the remaining cool-down of the key.
fn cooling(limiter: &Limiter, key: &str) -> Duration {
    let until = limiter.stats(key).cooling_until;
    until.map_or(Duration::ZERO, |until| until - limiter.now())
}

/// Lets every ready task run.
async fn settle_down() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

type Http = RateLimitService<
    Strict<Request<String>, Response<Frames>>,
    paceline::middleware::Http,
    paceline::middleware::Http,
>;

/// Returns a client whose provider returns this response to every request.
fn client_returning(
    layer: &RateLimitLayer,
    answer: impl Fn() -> Response<Frames> + Send + Sync + 'static,
) -> Http {
    layer.layer(Strict::new(move |_| std::future::ready(Ok(answer()))))
}

async fn send(client: &mut Http, request: Request<String>) -> Response<ResponseBody<Frames>> {
    client.ready().await.unwrap().call(request).await.unwrap()
}

/// Reads the whole body, or returns its error.
async fn read(response: Response<ResponseBody<Frames>>) -> Result<Bytes, InnerError> {
    Ok(response.into_body().collect().await?.to_bytes())
}

/// Returns a chat request to `model` with 18 bytes of text.
fn chat(model: &str) -> Request<String> {
    let messages = serde_json::json!([{"role": "user", "content": "Say this is a test"}]);
    let body = serde_json::json!({"model": model, "max_tokens": 50, "messages": messages});
    Request::post("/v1/chat/completions").body(body.to_string()).unwrap()
}

/// A response body with a usage of 12 input and 9 output tokens.
const USAGE: &str = r#"{"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 9}}"#;
