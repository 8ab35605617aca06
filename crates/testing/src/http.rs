//! Clients of HTTP, and what they are answered.

use std::net::SocketAddr;

use reqwest::header::HeaderMap;
use reqwest::{Client, ClientBuilder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What was answered.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Reply {
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

/// A client that goes straight there.
pub fn client() -> Client {
    builder().build().unwrap()
}

/// A client of HTTP/1.1.
pub fn http1() -> Client {
    builder().http1_only().build().unwrap()
}

/// A client of HTTP/2 that knows beforehand that the server speaks it.
pub fn http2() -> Client {
    builder().http2_prior_knowledge().build().unwrap()
}

/// Whatever other packages of a build have reqwest use for TLS.
pub fn builder() -> ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy()
}

/// Ends when it is so; other tasks go on meanwhile.
pub async fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        tokio::task::yield_now().await;
    }
}

/// What a server answers to these bytes until it closes the connection.
pub async fn raw(addr: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}
