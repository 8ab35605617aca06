//! A server for tests, and clients for it.

use std::net::SocketAddr;
use std::time::Duration;

use paceline::Limiter;
use paceline::limiter::ManualClock;
use paceline_serve::{Server, Tokens};
use reqwest::{Client, Method};
use tokio::task::JoinHandle;

pub(crate) use paceline_testing::http::{HttpReply, http1, http2, raw, until};

/// A server with a manual clock.
pub(crate) struct Rig {
    pub(crate) clock: ManualClock,
    pub(crate) limiter: Limiter,
    pub(crate) server: Option<Server>,
    pub(crate) addr: SocketAddr,
    client: Client,
}

impl Rig {
    /// Starts a server with these settings in the section `serve`.
    pub(crate) async fn new(serve: &str) -> Self {
        Self::start(&format!("serve: {{listen: '127.0.0.1:0', {serve}}}"), Tokens::default()).await
    }

    pub(crate) async fn start(config: &str, tokens: Tokens) -> Self {
        let config = paceline_serve::parse(config).unwrap();
        let clock = ManualClock::new();
        let limiter = config.builder().clock(clock.clone()).build().unwrap();
        let server = Server::bind(config, limiter.clone(), tokens).await.unwrap();
        let addr = server.addr();
        Self { clock, limiter, server: Some(server), addr, client: http1() }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub(crate) async fn send(&self, method: Method, path: &str) -> HttpReply {
        HttpReply::of(self.client.request(method, self.url(path))).await
    }

    pub(crate) async fn post(&self, path: &str) -> HttpReply {
        self.send(Method::POST, path).await
    }

    pub(crate) async fn get(&self, path: &str) -> HttpReply {
        self.send(Method::GET, path).await
    }

    pub(crate) async fn delete(&self, path: &str) -> HttpReply {
        self.send(Method::DELETE, path).await
    }

    /// Sends requests, and returns the number of grants.
    pub(crate) async fn count_granted(&self, requests: usize, path: &str) -> usize {
        let mut granted = 0;
        for _ in 0..requests {
            granted += usize::from(self.post(path).await.status == 200);
        }
        granted
    }

    /// Sends a request, and returns its task once the request waits in the queue of a key.
    pub(crate) async fn spawn_waiter(&self, key: &str, path: &str) -> JoinHandle<HttpReply> {
        let before = self.waiting(key);
        let request = self.client.post(self.url(path));
        let waiter = tokio::spawn(HttpReply::of(request));
        until(|| self.waiting(key) > before || waiter.is_finished()).await;
        waiter
    }

    /// Returns the number of requests that wait for a key of `/rate`.
    pub(crate) fn waiting(&self, key: &str) -> usize {
        self.limiter.stats(&format!("rate/{key}")).waiting
    }

    pub(crate) fn advance_millis(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }
}
