//! Tests of the simulated provider: limits, charges, responses and HTTP.

mod anthropic;
mod changing;
mod charge;
mod gemini;
mod http;
mod limits;
mod refusals;
mod replies;
mod spend;
mod streams;
mod structured;
mod tools;

use paceline_simulate::{Provider, ReplyBody, Settings, SimulatedReply};
use serde_json::{Value, json};

/// One second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Posts to a new provider at time 0.
fn post(settings: Settings, path: &str, body: &Value) -> SimulatedReply {
    Provider::new(settings).receive(0, path, body.to_string().as_bytes())
}

/// Returns a chat request with one message.
fn chat(text: &str) -> Value {
    json!({"model": "gpt-4o", "messages": [{"role": "user", "content": text}]})
}

fn object(reply: &SimulatedReply) -> Value {
    serde_json::from_slice(&reply.body.bytes()).expect("the body is JSON")
}

/// Returns the events of a stream: their names, if any, and their data.
fn events(reply: &SimulatedReply) -> Vec<(Option<String>, Value)> {
    let ReplyBody::Stream(frames) = &reply.body else { panic!("not a stream") };
    let text = |frame: &[u8]| String::from_utf8(frame.to_vec()).expect("events are UTF-8");
    let event = |frame: String| {
        assert!(frame.ends_with("\n\n") || frame.ends_with("\r\n\r\n"), "{frame:?}");
        let field = |name| frame.lines().find_map(|line| line.strip_prefix(name));
        let data = field("data: ").expect("an event has data");
        let data = if data == "[DONE]" { json!("[DONE]") } else { parse(data) };
        (field("event: ").map(str::to_owned), data)
    };
    frames.iter().map(|frame| event(text(frame))).collect()
}

fn parse(data: &str) -> Value {
    serde_json::from_str(data).expect("data is JSON")
}
