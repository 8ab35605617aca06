//! Responses as server-sent events.

use paceline_simulate::Settings;
use serde_json::{Value, json};

use super::{chat, events, post};

fn streamed(mut body: Value, tokens: u64) -> Value {
    body["stream"] = json!(true);
    body["metadata"] = json!({"output_tokens": tokens});
    body
}

#[test]
fn chat_streams_role_text_reason_usage_and_done() {
    let mut body = streamed(chat("Hello"), 200);
    body["stream_options"] = json!({"include_usage": true});
    let reply = post(Settings::default(), "/v1/chat/completions", &body);
    assert_eq!(reply.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let events: Vec<Value> = events(&reply).into_iter().map(|(_, data)| data).collect();
    let [first, texts @ .., reason, usage, done] = events.as_slice() else { panic!("too short") };
    assert_eq!(first["choices"][0]["delta"]["role"], "assistant");
    let delta = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().map(str::len);
    assert_eq!(texts.iter().map(|chunk| delta(chunk).expect("text")).sum::<usize>(), 800);
    assert!(texts.iter().all(|chunk| chunk["usage"].is_null()));
    assert_eq!(reason["choices"][0]["finish_reason"], "stop");
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["completion_tokens"], 200);
    assert_eq!(done, "[DONE]");
}

#[test]
fn usage_is_streamed_only_when_requested() {
    let reply = post(Settings::default(), "/chat/completions", &streamed(chat("Hello"), 3));
    let events = events(&reply);
    assert!(events.iter().all(|(_, data)| data.get("usage").is_none()));
    assert!(events.iter().all(|(_, data)| data["choices"] != json!([])));
    assert_eq!(events.len(), 1 + 3 + 1 + 1);
}

#[test]
fn every_choice_is_streamed_to_the_end() {
    let mut body = streamed(chat("Hello"), 3);
    body["n"] = json!(2);
    body["max_tokens"] = json!(2);
    let reply = post(Settings::default(), "/chat/completions", &body);
    let ends = |index| {
        let choices = events(&reply).into_iter().map(|(_, data)| data["choices"][0].clone());
        choices.filter(|c| c["index"] == index && c["finish_reason"] == "length").count()
    };
    assert_eq!((ends(0), ends(1)), (1, 1));
}

#[test]
fn completions_stream_text() {
    let body = streamed(json!({"model": "m", "prompt": "Say"}), 5);
    let reply = post(Settings::default(), "/v1/completions", &body);
    let events = events(&reply);
    let text = events.iter().filter_map(|(_, data)| data["choices"][0]["text"].as_str());
    assert_eq!(text.collect::<String>(), "the fox may not eat ");
    assert_eq!(events.last().map(|(_, data)| data), Some(&json!("[DONE]")));
}

#[test]
fn responses_stream_named_events_in_order_with_usage_at_the_end() {
    let body = streamed(json!({"model": "m", "input": "Say this is a test"}), 5);
    let reply = post(Settings::default(), "/v1/responses", &body);
    let events = events(&reply);
    for (number, (name, data)) in events.iter().enumerate() {
        assert_eq!(data["type"].as_str(), name.as_deref());
        assert_eq!(data["sequence_number"], json!(number));
    }
    let name = |at: usize| events[at].0.as_deref();
    assert_eq!(name(0), Some("response.created"));
    assert_eq!(name(events.len() - 1), Some("response.completed"));
    let deltas = events.iter().filter(|(name, _)| name.as_deref() == Some(DELTA));
    let text: String = deltas.filter_map(|(_, data)| data["delta"].as_str()).collect();
    let last = &events[events.len() - 1].1["response"];
    assert_eq!(last["output"][0]["content"][0]["text"], json!(text));
    assert_eq!(last["usage"]["output_tokens"], 5);
    assert_eq!(events[0].1["response"]["usage"], Value::Null);
}

#[test]
fn refusal_of_stream_is_json() {
    let mut body = streamed(chat("Hello"), 3);
    body["max_tokens"] = json!(100);
    let reply = post(Settings::default().with_tpm(50), "/v1/chat/completions", &body);
    assert_eq!((reply.status, reply.header("content-type")), (429, Some("application/json")));
}

const DELTA: &str = "response.output_text.delta";
