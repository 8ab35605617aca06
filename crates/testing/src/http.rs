//! HTTP clients and their responses.

use std::net::SocketAddr;

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reqwest::header::HeaderMap;
use reqwest::{Client, ClientBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A complete response.
#[derive(Debug, Clone)]
pub struct HttpReply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl HttpReply {
    pub async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, headers, body: response.text().await.unwrap() }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Creates a client that ignores proxy settings of the environment.
pub fn client() -> Client {
    builder().build().unwrap()
}

/// Creates a client for HTTP/1.1.
pub fn http1() -> Client {
    builder().http1_only().build().unwrap()
}

/// Creates a client for HTTP/2 with prior knowledge, without negotiation.
pub fn http2() -> Client {
    builder().http2_prior_knowledge().build().unwrap()
}

/// Creates a hyper client for HTTP/2 without TLS (h2c), with prior knowledge.
pub fn h2c<B>() -> legacy::Client<HttpConnector, B>
where
    B: http_body::Body<Data: Send> + Send,
{
    legacy::Client::builder(TokioExecutor::new()).http2_only(true).build_http()
}

/// Creates a builder without proxies. Installs ring for TLS, whichever provider other packages of the
/// build enable.
pub fn builder() -> ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy()
}

/// Posts a JSON body.
pub async fn post_json(url: &str, body: &Value) -> HttpReply {
    let request = http1().post(url).header("content-type", "application/json");
    HttpReply::of(request.body(body.to_string())).await
}

/// Reserves 30 tokens of the key `a` for an hour at the server's API, and returns the reservation's id.
pub async fn reserve(base: &str) -> String {
    let body = json!({"keys": ["a"], "cost": {"tokens": 30}, "ttl_ms": 3_600_000});
    let answer = post_json(&format!("{base}/v1/reserve"), &body).await;
    answer.json()["id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// Yields to other tasks until the condition is true.
pub async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

/// Sends bytes on a new connection, and returns the text that the server sends until it closes the
/// connection.
pub async fn raw(addr: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}
