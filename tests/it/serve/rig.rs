//! A server of the test's own, and clients for it.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tollgate::Limiter;
use tollgate::config::Config;
use tollgate::limiter::ManualClock;
use tollgate::serve::{Server, Tokens};

/// A server whose limiter goes by a clock that the test moves.
pub(crate) struct Rig {
    pub(crate) clock: ManualClock,
    pub(crate) limiter: Limiter,
    pub(crate) server: Option<Server>,
    pub(crate) addr: SocketAddr,
    client: Client,
}

/// What was answered.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Rig {
    /// A server whose section `serve` says this.
    pub(crate) async fn new(serve: &str) -> Self {
        Self::start(&format!("serve: {{listen: '127.0.0.1:0', {serve}}}"), Tokens::default()).await
    }

    pub(crate) async fn start(config: &str, tokens: Tokens) -> Self {
        let config = Config::parse(config).unwrap();
        let clock = ManualClock::new();
        let limiter = config.builder().clock(clock.clone()).build().unwrap();
        let server = Server::bind(config, limiter.clone(), tokens).await.unwrap();
        let addr = server.addr();
        Self { clock, limiter, server: Some(server), addr, client: http1() }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub(crate) async fn ask(&self, method: Method, path: &str) -> Reply {
        Reply::of(self.client.request(method, self.url(path))).await
    }

    pub(crate) async fn post(&self, path: &str) -> Reply {
        self.ask(Method::POST, path).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(Method::GET, path).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.ask(Method::DELETE, path).await
    }

    /// How many of so many requests are granted.
    pub(crate) async fn granted(&self, requests: usize, path: &str) -> usize {
        let mut granted = 0;
        for _ in 0..requests {
            granted += usize::from(self.post(path).await.status == 200);
        }
        granted
    }

    /// A request that waits in the queue of this key, behind those that do already.
    pub(crate) async fn waiter(&self, key: &str, path: &str) -> JoinHandle<Reply> {
        let before = self.waiting(key);
        let request = self.client.post(self.url(path));
        let waiter = tokio::spawn(Reply::of(request));
        until(|| self.waiting(key) > before || waiter.is_finished()).await;
        waiter
    }

    pub(crate) fn waiting(&self, key: &str) -> usize {
        self.limiter.stats(key).waiting
    }

    pub(crate) fn pass(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }
}

impl Reply {
    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, headers, body: response.text().await.unwrap() }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A client of HTTP/1.1.
pub(crate) fn http1() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().http1_only().build().unwrap()
}

/// A client of HTTP/2 that knows beforehand that the server speaks it.
pub(crate) fn http2() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().http2_prior_knowledge().build().unwrap()
}

/// Ends when it is so; other tasks go on meanwhile.
pub(crate) async fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        tokio::task::yield_now().await;
    }
}

/// What a server answers to these bytes until it closes the connection.
pub(crate) async fn raw(addr: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}
