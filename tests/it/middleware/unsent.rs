//! Errors that mean that a request was not sent, over real connections: a refused connection, compared
//! with connections that are reset after the request.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use paceline::limiter::Limiter;
use paceline::middleware::RateLimitLayer;
use reqwest_middleware::ClientBuilder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

use super::reqwest::{CHAT, client, closed_port, limiter};
use super::{available, held};

/// Starts a server that reads a request from each connection, sends this part of a response and resets
/// the connection. Returns its URL.
pub(super) async fn resets_after(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4_096]).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.set_zero_linger().unwrap();
        }
    });
    url
}

/// A request type that both clients can build.
pub(super) trait Post {
    fn post(url: &str) -> Self;
}

impl Post for reqwest::Request {
    fn post(url: &str) -> Self {
        let mut request = Self::new(http::Method::POST, url.parse().unwrap());
        *request.body_mut() = Some(CHAT.into());
        request
    }
}

impl Post for http::Request<Full<Bytes>> {
    fn post(url: &str) -> Self {
        http::Request::post(url).body(Full::from(CHAT)).unwrap()
    }
}

/// Returns the charge of a failing request, out of 10,000 tokens.
async fn charged<S, R>(limiter: &Limiter, service: S, url: &str) -> u64
where
    S: Service<R>,
    R: Post,
{
    limiter.key("gpt-4o").unwrap();
    let before = available(limiter, "gpt-4o")[0];
    assert!(service.oneshot(R::post(url)).await.is_err());
    assert_eq!(held(limiter, "gpt-4o"), [0]);
    before - available(limiter, "gpt-4o")[0]
}

/// Tests a client behind a layer: alone, boxed, with another rate-limit layer between, and with
/// both.
macro_rules! assert_only_unsent_is_free {
    ($request:ty, $client:expr) => {{
        let limiter = limiter();
        let layer = RateLimitLayer::new(limiter.clone());
        let inner = RateLimitLayer::new(Limiter::builder().build().unwrap());
        let (_socket, closed) = closed_port();
        let reset = resets_after("").await;
        let midway = resets_after("HTTP/1.1 200 OK\r\ncontent-le").await;
        let boxed = ServiceBuilder::new().map_err(BoxError::from).service($client);
        let twice = ServiceBuilder::new().layer(inner.clone()).service($client);
        let twice_boxed = ServiceBuilder::new().layer(inner).service(boxed.clone());
        for (url, is_sent) in [(closed, false), (reset, true), (midway, true)] {
            let plain = charged::<_, $request>(&limiter, layer.layer($client), &url).await;
            let boxed = charged::<_, $request>(&limiter, layer.layer(boxed.clone()), &url).await;
            let twice = charged::<_, $request>(&limiter, layer.layer(twice.clone()), &url).await;
            let both =
                charged::<_, $request>(&limiter, layer.layer(twice_boxed.clone()), &url).await;
            let charges = [plain, boxed, twice, both];
            assert!(charges.iter().all(|charge| (*charge >= 500) == is_sent), "{charges:?} {url}");
            assert!(is_sent || charges == [0; 4], "{charges:?}");
        }
    }};
}

#[tokio::test]
async fn hyper_util_client_only_unsent_request_is_free() {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    assert_only_unsent_is_free!(http::Request<Full<Bytes>>, client.clone());
}

#[tokio::test]
async fn reqwest_only_unsent_request_is_free() {
    let client = client();
    assert_only_unsent_is_free!(reqwest::Request, client.clone());
}

#[tokio::test]
async fn reqwest_middleware_chain_only_unsent_request_is_free() {
    let chain = ClientBuilder::new(client()).build();
    assert_only_unsent_is_free!(reqwest::Request, chain.clone());
}

#[tokio::test]
async fn layer_as_reqwest_middleware_only_unsent_request_is_free() {
    let limiter = limiter();
    let chain = ClientBuilder::new(client()).with(RateLimitLayer::new(limiter.clone())).build();
    let (_socket, closed) = closed_port();
    assert_eq!(charged::<_, reqwest::Request>(&limiter, chain.clone(), &closed).await, 0);
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-le"] {
        let url = resets_after(answer).await;
        assert!(charged::<_, reqwest::Request>(&limiter, chain.clone(), &url).await >= 500);
    }
}

#[tokio::test]
async fn reset_response_body_keeps_charge() {
    let limiter = limiter();
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let url = resets_after("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"usage\"").await;
    let service = RateLimitLayer::new(limiter.clone()).layer(client);
    let response = service.oneshot(Post::post(&url)).await.unwrap();
    response.into_body().collect().await.unwrap_err();
    assert_eq!(held(&limiter, "gpt-4o"), [0]);
    assert!(available(&limiter, "gpt-4o")[0] <= 9_500);
}
