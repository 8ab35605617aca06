//! Bodies that come in from a socket and go out to another: axum's on the one side, hyper's on the
//! other, the layers between them.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tollgate::limiter::Limiter;
use tollgate::middleware::{BufferBodyLayer, BufferedBody, RateLimitLayer};
use tollgate_simulate::{OutputSize, Settings, SimulatedServer};
use tower::{ServiceBuilder, ServiceExt};

use super::inner::Frames;
use super::reqwest::{CHAT, client, limiter};
use super::{available, held};

/// A proxy in front of `provider` that reads up to `bound` bytes ahead.
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

/// Sends the chat request through a proxy in three frames; what came back, and the tokens that the
/// provider says it took.
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
async fn a_body_from_a_socket_is_read_ahead_and_charged_to_its_model() {
    let limiter = limiter();
    let (status, tokens) = send(&limiter, 1_024).await;
    assert_eq!(status, 200);
    assert_eq!(held(&limiter, "gpt-4o"), [0]);
    assert_eq!(available(&limiter, "gpt-4o"), [10_000 - tokens]);
}

#[tokio::test]
async fn one_that_is_longer_than_the_bound_arrives_all_the_same() {
    let limiter = limiter();
    let (status, _) = send(&limiter, 10).await;
    assert_eq!(status, 200);
    // Its model couldn't be seen.
    assert_eq!(available(&limiter, "gpt-4o"), [10_000]);
}
