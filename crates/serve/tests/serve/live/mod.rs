//! The live page, its events, and the figures for Prometheus.

mod browsed;
mod chromium;
mod events;
mod figures;
mod page;
mod traffic;

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tollgate::limiter::{Limiter, ManualClock};
use tollgate_serve::{Server, Tokens};

use self::chromium::Chromium;

/// A server whose time a test decides, and the limiter behind it.
struct Rig {
    server: Server,
    limiter: Limiter,
    clock: ManualClock,
    client: reqwest::Client,
}

/// The events of the page, as they come.
struct Events {
    answer: reqwest::Response,
    read: String,
}

impl Rig {
    /// Of a configuration, to which the section `serve` is added.
    async fn start(yaml: &str) -> Self {
        Self::guarded(yaml, Tokens::default()).await
    }

    /// Where tokens have to be shown.
    async fn guarded(yaml: &str, tokens: Tokens) -> Self {
        let config =
            tollgate_serve::parse(&format!("{yaml}\nserve: {{listen: '127.0.0.1:0'}}")).unwrap();
        let clock = ManualClock::new();
        let mut builder = config.builder().clock(clock.clone());
        if let Some(backend) = config.backend().unwrap() {
            builder = builder.backend(backend);
        }
        let limiter = builder.build().unwrap();
        let server = Server::bind(config, limiter.clone(), tokens).await.unwrap();
        let client = tollgate_testing::http::client();
        Self { server, limiter, clock, client }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.addr())
    }

    async fn ask(&self, path: &str) -> reqwest::Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    async fn events(&self) -> Events {
        let answer = self.ask("/live/events").await;
        assert_eq!(answer.status(), 200);
        Events { answer, read: String::new() }
    }

    /// To the beginning of the next second, and what is shown then.
    async fn next(&self, events: &mut Events) -> Value {
        self.clock.advance(Duration::from_secs(1));
        let now = self.limiter.now().as_nanos() / 1_000_000;
        loop {
            // One that was made before may be on its way still.
            let snapshot = events.next().await.expect("there is more");
            if snapshot["at"].as_u64().unwrap() >= now {
                return snapshot;
            }
        }
    }
}

impl Events {
    /// The next snapshot; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let data = event.strip_prefix("event: snapshot\ndata: ").expect("one line of data");
                let snapshot = serde_json::from_str(data).expect("JSON");
                self.read = rest.to_owned();
                return Some(snapshot);
            }
            let chunk = self.answer.chunk().await.ok()??;
            self.read.push_str(std::str::from_utf8(&chunk).expect("no text of ours is split"));
        }
    }
}

/// The keys of a snapshot, by name.
fn keys(snapshot: &Value) -> HashMap<&str, &Value> {
    let keys = snapshot["keys"].as_array().unwrap();
    keys.iter().map(|key| (key["key"].as_str().unwrap(), key)).collect()
}

/// What must be so of a key that is shown, by what the limiter says of it.
fn expected(limiter: &Limiter, key: &str) -> Vec<(String, u64, u64, u64)> {
    let stats = limiter.stats(key);
    let figures = |limit: &tollgate::limiter::LimitStats| {
        (limit.dimension.to_string(), limit.limit, limit.used, limit.held)
    };
    stats.limits.iter().map(figures).collect()
}
