//! Attacks of clients on a server: attempts to use what belongs to others, or more than is allowed.
//!
//! Each file has one kind of attack. A test states what the attacker sends, and checks that the server refuses it and
//! that nobody else was charged.

mod headers;
mod held_bodies;
mod held_requests;
mod held_responses;
mod names;
mod unnamed_models;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::RequestBuilder;
use serde_json::Value;

use crate::proxy::rig::{Proxy, TestUpstream, json};

/// An upstream that answers everything, and counts the requests.
#[derive(Debug)]
struct Answering {
    addr: std::net::SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Answering {
    async fn start() -> Self {
        let mut upstream = TestUpstream::start().await;
        let (addr, requests) = (upstream.addr, Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&requests);
        tokio::spawn(async move {
            loop {
                let request = upstream.request().await;
                counted.fetch_add(1, Ordering::SeqCst);
                request.answer("200 OK", "content-type: application/json\r\n", "{}").await;
            }
        });
        Self { addr, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Sends a request. Returns the status, and the message of an error in the provider's form.
async fn send(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.expect("a response");
    let status = response.status().as_u16();
    let message = match status {
        200 => String::new(),
        _ => json(response).await["error"]["message"].as_str().unwrap_or_default().to_owned(),
    };
    (status, message)
}

/// Sends a request that is refused with 400, in the provider's form, with these parts of its message.
async fn assert_refused(request: RequestBuilder, parts: &[&str], case: &str) {
    let (status, message) = send(request).await;
    assert_eq!(status, 400, "{case}: {message}");
    for part in parts {
        assert!(message.contains(part), "{case}: {message:?} has no {part:?}");
    }
}

/// Returns a body that names this model.
fn naming(model: &str) -> String {
    let messages = serde_json::json!([{"role": "user", "content": "Hi"}]);
    let mut body = serde_json::json!({"messages": messages});
    body["model"] = Value::from(model);
    body.to_string()
}

/// The keys that a limiter has limits of, with what is used of the first.
fn used(proxy: &Proxy, keys: &[&str]) -> Vec<u64> {
    keys.iter().map(|key| proxy.used(key)).collect()
}
