//! The JSON API: every route and every error.

mod compressed_bodies;
mod concurrent_clients;
mod expiry;
mod idempotency;
mod openapi;
mod quotas;
mod request_bodies;
mod reserve;
mod settle;
mod shutdown;
mod stats;
mod tokens;

use std::time::Duration;

use axum::http::HeaderMap;
use paceline::limiter::{Limiter, ManualClock};
use paceline_serve::{Server, Tokens};
use serde_json::{Value, json};

/// A server with a manual clock, and an admin client.
struct Rig {
    clock: ManualClock,
    limiter: Limiter,
    server: Server,
    client: reqwest::Client,
}

/// A response with a JSON body; `Null` if it has none.
#[derive(Debug, Clone, PartialEq)]
struct Response {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Rig {
    /// Starts a server with this configuration (sections of a map), without a margin, on a free port.
    async fn start(text: &str) -> Self {
        Self::with_tokens(text, None).await
    }

    async fn with_tokens(text: &str, client_token: Option<&str>) -> Self {
        let text = match text.contains("serve: {") {
            true => text.replace("serve: {", "serve: {listen: '127.0.0.1:0', "),
            false => format!("serve: {{listen: '127.0.0.1:0'}}, {text}"),
        };
        let text = format!("{{margin: {{percent: 0, lag: 0s}}, {text}}}");
        let config = paceline_serve::parse(&text).unwrap();
        let clock = ManualClock::new();
        let limiter = config.builder().clock(clock.clone()).build().unwrap();
        let mut tokens = Tokens::default();
        tokens.admin = Some(ADMIN.to_owned());
        tokens.client = client_token.map(str::to_owned);
        let server = Server::bind(config, limiter.clone(), tokens).await.unwrap();
        let client = paceline_testing::http::client();
        Self { clock, limiter, server, client }
    }

    fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().unwrap();
        self.client.request(method, format!("http://{}{path}", self.server.addr()))
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Response {
        send(with_json(self.request(method, path).bearer_auth(ADMIN), body)).await
    }

    async fn post(&self, path: &str, body: Value) -> Response {
        self.send("POST", path, &body).await
    }

    async fn get(&self, path: &str) -> Response {
        send(self.request("GET", path).bearer_auth(ADMIN)).await
    }

    /// Sends a request with an idempotency key.
    async fn post_with_key(&self, key: &str, path: &str, body: Value) -> Response {
        let request = self.request("POST", path).bearer_auth(ADMIN);
        send(with_json(request.header("idempotency-key", key), &body)).await
    }

    async fn reserve(&self, body: Value) -> Response {
        self.post("/v1/reserve", body).await
    }

    /// Reserves one request of a key, and returns the id of the reservation.
    async fn open_reservation(&self, key: &str) -> String {
        let response = self.reserve(json!({"keys": [key]})).await;
        assert_eq!(response.status, 201, "{response:?}");
        response.body["id"].as_str().unwrap().to_owned()
    }

    async fn settle(&self, id: &str, cost: Value) -> Response {
        self.post(&format!("/v1/reservations/{id}/settle"), json!({"cost": cost})).await
    }

    async fn release(&self, id: &str) -> Response {
        self.post(&format!("/v1/reservations/{id}/release"), Value::Null).await
    }

    /// Waits until this number of requests wait for a key.
    async fn wait_until_waiting(&self, key: &str, requests: usize) {
        while self.limiter.stats(key).waiting != requests {
            tokio::task::yield_now().await;
        }
    }

    fn held(&self, key: &str) -> u64 {
        self.limiter.stats(key).limits.iter().map(|limit| limit.held).sum()
    }

    fn used(&self, key: &str) -> u64 {
        self.limiter.stats(key).limits[0].used
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

impl Response {
    /// Asserts the status.
    #[track_caller]
    fn assert_status(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Asserts a problem document with this status and code, and returns its detail.
    #[track_caller]
    fn assert_problem(&self, status: u16, code: &str) -> &str {
        assert_eq!((self.status, self.body["code"].as_str()), (status, Some(code)), "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.body["status"], status);
        self.body["detail"].as_str().expect("a problem document has a detail")
    }

    #[track_caller]
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("{name}: {self:?}")).to_str().unwrap()
    }
}

fn with_json(request: reqwest::RequestBuilder, body: &Value) -> reqwest::RequestBuilder {
    match body {
        Value::Null => request,
        body => request.header("content-type", "application/json").body(body.to_string()),
    }
}

async fn send(request: reqwest::RequestBuilder) -> Response {
    let response = request.send().await.expect("a response");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.expect("a complete body");
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Response { status, headers, body }
}

const ADMIN: &str = "the admin token";
