//! Retries over real connections: around a `reqwest::Client` and in a chain of reqwest-middleware.

use async_trait::async_trait;
use http::Extensions;
use paceline::middleware::{Journey, RateLimitLayer};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt};

use super::super::USAGE;
use super::super::reqwest::{CHAT, client, limiter, ok};

/// Starts a server that sends each connection the next of these responses. Returns its URL for chats.
async fn serve_in_order(responses: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for response in responses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    url
}

fn conflict(text: &str) -> String {
    let size = text.len();
    format!(
        "HTTP/1.1 409 Conflict\r\nretry-after-ms: 1\r\nconnection: close\r\ncontent-length: {size}\r\n\r\n{text}"
    )
}

fn post(url: &str) -> Request {
    let mut request = Request::new(http::Method::POST, url.parse().unwrap());
    *request.body_mut() = Some(CHAT.into());
    request
}

#[tokio::test]
async fn reqwest_client_retries_and_keeps_url_of_response() {
    let url = serve_in_order(vec![conflict("one"), ok(USAGE)]).await;
    let layer = RateLimitLayer::new(limiter()).retry(1);
    let response = layer.layer(client()).oneshot(post(&url)).await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().as_str()), (200, url.as_str()));
    assert_eq!(response.text().await.unwrap(), USAGE);

    let long = "x".repeat(40_000);
    let url = serve_in_order(vec![conflict("one"), conflict(&long)]).await;
    let response = layer.layer(client()).oneshot(post(&url)).await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().as_str()), (409, url.as_str()));
    assert_eq!(response.text().await.unwrap(), long);

    let url = serve_in_order(vec![conflict(&long)]).await;
    let now = layer.max_wait(std::time::Duration::ZERO);
    let response = now.layer(client()).oneshot(post(&url)).await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().as_str()), (409, url.as_str()));
    assert_eq!(response.text().await.unwrap(), long);
}

#[derive(Clone, Copy)]
struct Attempts(u32);

/// A middleware that counts requests in their extensions.
struct AttemptCounter;

#[async_trait]
impl Middleware for AttemptCounter {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let Attempts(attempts) = extensions.get_or_insert_with(|| Attempts(0));
        *attempts += 1;
        next.run(request, extensions).await
    }
}

/// A middleware that records the count of the middlewares after it.
struct CountRecorder(std::sync::Arc<parking_lot::Mutex<u32>>);

#[async_trait]
impl Middleware for CountRecorder {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let sent = next.run(request, extensions).await;
        *self.0.lock() = extensions.get::<Attempts>().map_or(0, |attempts| attempts.0);
        sent
    }
}

#[tokio::test]
async fn reqwest_middleware_retries_inner_chain_with_extensions() {
    let url = serve_in_order(vec![conflict("one"), conflict("two"), ok(USAGE)]).await;
    let (journey, seen) = (Journey::new(), std::sync::Arc::default());
    let client = ClientBuilder::new(client())
        .with(CountRecorder(std::sync::Arc::clone(&seen)))
        .with(RateLimitLayer::new(limiter()).retry(2))
        .with(AttemptCounter)
        .build();
    let request = client.post(&url).body(CHAT).with_extension(journey.clone());
    assert_eq!(request.send().await.unwrap().text().await.unwrap(), USAGE);
    assert_eq!((journey.facts().tries(), *seen.lock()), (3, 3));
}
