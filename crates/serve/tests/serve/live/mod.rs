//! The live page, its events, and the metrics for Prometheus.

mod browser;
mod chromium;
mod events;
mod metrics;
mod page;
mod state;
mod traffic;

use std::collections::HashMap;
use std::time::Duration;

use paceline::limiter::{Limiter, ManualClock};
use paceline_serve::{Server, Tokens};
use serde_json::Value;

use self::chromium::Chromium;

/// A server with a manual clock, and its limiter.
struct Rig {
    server: Server,
    limiter: Limiter,
    clock: ManualClock,
    client: reqwest::Client,
}

/// The event stream of the page.
struct Events {
    response: reqwest::Response,
    read: String,
}

impl Rig {
    /// Starts a server; the section `serve` is added to the configuration.
    async fn start(yaml: &str) -> Self {
        Self::start_with_tokens(yaml, Tokens::default()).await
    }

    /// Starts a server with tokens.
    async fn start_with_tokens(yaml: &str, tokens: Tokens) -> Self {
        let config =
            paceline_serve::parse(&format!("{yaml}\nserve: {{listen: '127.0.0.1:0'}}")).unwrap();
        let clock = ManualClock::new();
        let mut builder = config.builder().clock(clock.clone());
        if let Some(backend) = config.backend().unwrap() {
            builder = builder.backend(backend);
        }
        let limiter = builder.build().unwrap();
        let server = Server::bind(config, limiter.clone(), tokens).await.unwrap();
        let client = paceline_testing::http::client();
        Self { server, limiter, clock, client }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.addr())
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    async fn events(&self) -> Events {
        let response = self.get("/live/events").await;
        assert_eq!(response.status(), 200);
        Events { response, read: String::new() }
    }

    /// Advances to the next second, and returns its snapshot.
    async fn next(&self, events: &mut Events) -> Value {
        self.clock.advance(Duration::from_secs(1));
        let now = self.limiter.now().as_nanos() / 1_000_000;
        loop {
            // An earlier snapshot may still be in transit.
            let snapshot = events.next().await.expect("the stream is open");
            if snapshot["at"].as_u64().unwrap() >= now {
                return snapshot;
            }
        }
    }
}

impl Events {
    /// Returns the next snapshot, or `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let data = event.strip_prefix("event: snapshot\ndata: ").expect("one line of data");
                let snapshot = serde_json::from_str(data).expect("JSON");
                self.read = rest.to_owned();
                return Some(snapshot);
            }
            let chunk = self.response.chunk().await.ok()??;
            self.read.push_str(std::str::from_utf8(&chunk).expect("a chunk is whole UTF-8"));
        }
    }
}

/// Returns the keys of a snapshot by name.
fn keys(snapshot: &Value) -> HashMap<&str, &Value> {
    let keys = snapshot["keys"].as_array().unwrap();
    keys.iter().map(|key| (key["key"].as_str().unwrap(), key)).collect()
}

/// Returns the expected values of a key, from the limiter.
fn expected(limiter: &Limiter, key: &str) -> Vec<(String, u64, u64, u64)> {
    let stats = limiter.stats(key);
    let amounts = |limit: &paceline::limiter::LimitStats| {
        (limit.dimension.to_string(), limit.limit, limit.used, limit.held)
    };
    stats.limits.iter().map(amounts).collect()
}
