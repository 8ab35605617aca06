//! Retries over real connections: around a `reqwest::Client` and in a chain of reqwest-middleware.

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tollgate::middleware::{Journey, RateLimitLayer};
use tower::{Layer, ServiceExt};

use super::super::USAGE;
use super::super::reqwest::{CHAT, client, limiter, ok};

/// Starts a server that gives each connection the next answer and returns its URL for chats.
async fn answers(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
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
    let url = answers(vec![conflict("one"), ok(USAGE)]).await;
    let layer = RateLimitLayer::new(limiter()).retry(1);
    let response = layer.layer(client()).oneshot(post(&url)).await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().as_str()), (200, url.as_str()));
    assert_eq!(response.text().await.unwrap(), USAGE);

    let long = "x".repeat(40_000);
    let url = answers(vec![conflict("one"), conflict(&long)]).await;
    let response = layer.layer(client()).oneshot(post(&url)).await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().as_str()), (409, url.as_str()));
    assert_eq!(response.text().await.unwrap(), long);

    let url = answers(vec![conflict(&long)]).await;
    let now = layer.max_wait(std::time::Duration::ZERO);
    let response = now.layer(client()).oneshot(post(&url)).await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().as_str()), (409, url.as_str()));
    assert_eq!(response.text().await.unwrap(), long);
}

#[derive(Clone, Copy)]
struct Tries(u32);

/// A middleware that counts requests in their extensions.
struct Counting;

#[async_trait]
impl Middleware for Counting {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let Tries(tries) = extensions.get_or_insert_with(|| Tries(0));
        *tries += 1;
        next.run(request, extensions).await
    }
}

/// A middleware that records the count of the middlewares after it.
struct Reading(std::sync::Arc<parking_lot::Mutex<u32>>);

#[async_trait]
impl Middleware for Reading {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let sent = next.run(request, extensions).await;
        *self.0.lock() = extensions.get::<Tries>().map_or(0, |tries| tries.0);
        sent
    }
}

#[tokio::test]
async fn reqwest_middleware_retries_inner_chain_with_extensions() {
    let url = answers(vec![conflict("one"), conflict("two"), ok(USAGE)]).await;
    let (journey, seen) = (Journey::new(), std::sync::Arc::default());
    let client = ClientBuilder::new(client())
        .with(Reading(std::sync::Arc::clone(&seen)))
        .with(RateLimitLayer::new(limiter()).retry(2))
        .with(Counting)
        .build();
    let request = client.post(&url).body(CHAT).with_extension(journey.clone());
    assert_eq!(request.send().await.unwrap().text().await.unwrap(), USAGE);
    assert_eq!((journey.facts().tries(), *seen.lock()), (3, 3));
}
