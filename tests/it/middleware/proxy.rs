//! Bodies forwarded by a proxy from axum's server to hyper's client through the layers.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use paceline::limiter::Limiter;
use paceline::middleware::{BufferBodyLayer, BufferedBody, RateLimitLayer};
use paceline_simulate::{OutputSize, Settings, SimulatedServer};
use tokio::net::TcpListener;
use tower::{ServiceBuilder, ServiceExt};

use super::inner::Frames;
use super::reqwest::{CHAT, client, limiter};
use super::{available, held};

/// Starts a proxy in front of `provider` that buffers up to `bound` bytes and returns its URL.
async fn proxy(provider: SocketAddr, limiter: Limiter, bound: usize) -> String {
    let service = ServiceBuilder::new()
        .layer(BufferBodyLayer::new().with_bound(bound))
        .layer(RateLimitLayer::new(limiter))
        .service(Client::builder(TokioExecutor::new()).build_http::<BufferedBody<Body>>());
    let forward = move |mut request: Request| async move {
        let uri = format!("http://{provider}{}", request.uri().path());
        *request.uri_mut() = uri.parse().unwrap();
        let response = service.oneshot(request).await.unwrap();
        Response::map(response, Body::new)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(forward)).await });
    url
}

/// Sends the chat request in three frames through a proxy; returns the status and the tokens
/// reported by the provider.
async fn send(limiter: &Limiter, bound: usize) -> (u16, u64) {
    let settings = Settings::default().with_output(OutputSize::Fixed(9));
    let provider = SimulatedServer::bind(settings, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = proxy(provider.addr(), limiter.clone(), bound).await;
    let thirds = CHAT.as_bytes().chunks(CHAT.len().div_ceil(3));
    let frames = thirds.fold(Frames::default(), |frames, third| frames.data(third));
    let request = client().post(&url).body(reqwest::Body::wrap(frames));
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let answer: serde_json::Value =
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    (status, answer["usage"]["total_tokens"].as_u64().unwrap())
}

#[tokio::test]
async fn proxied_body_is_buffered_and_charged_to_model() {
    let limiter = limiter();
    let (status, tokens) = send(&limiter, 1_024).await;
    assert_eq!(status, 200);
    assert_eq!(held(&limiter, "gpt-4o"), [0]);
    assert_eq!(available(&limiter, "gpt-4o"), [10_000 - tokens]);
}

#[tokio::test]
async fn proxied_body_longer_than_bound_still_arrives() {
    let limiter = limiter();
    let (status, _) = send(&limiter, 10).await;
    assert_eq!(status, 200);
    // The model could not be read.
    assert_eq!(available(&limiter, "gpt-4o"), [10_000]);
}
