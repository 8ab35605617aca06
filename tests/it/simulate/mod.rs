//! The simulated provider: its limits, its charge, what it says, and its HTTP.

mod charge;
mod http;
mod limits;
mod replies;
mod streams;

use serde_json::{Value, json};
use tollgate::simulate::{Provider, Reply, Settings};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Posts to a provider of these settings at time 0.
fn post(settings: Settings, path: &str, body: &Value) -> Reply {
    Provider::new(settings).receive(0, path, body.to_string().as_bytes())
}

/// A chat request of one message.
fn chat(text: &str) -> Value {
    json!({"model": "gpt-4o", "messages": [{"role": "user", "content": text}]})
}

fn object(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body.bytes()).expect("the body is JSON")
}
