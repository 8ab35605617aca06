//! Anthropic's format: messages, streams, limits and errors.

use std::time::Duration;

use paceline_simulate::{Fault, FaultKind, OutputSize, Provider, Settings, SimulatedReply};
use serde_json::{Value, json};

use super::{SECOND, events, object, post};

const MINUTE: u64 = 60 * SECOND;

fn request(text: &str) -> Value {
    json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": 1_000,
        "messages": [{"role": "user", "content": text}],
    })
}

fn send(provider: &mut Provider, now: u64, body: &Value) -> SimulatedReply {
    provider.receive(now, "/v1/messages", body.to_string().as_bytes())
}

fn output(tokens: u64) -> Settings {
    Settings::default().with_output(OutputSize::Fixed(tokens))
}

#[test]
fn message_reports_usage_and_stop_reason() {
    let reply = post(output(12), "/v1/messages", &request("What is the capital of France?"));
    let answer = object(&reply);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!((&answer["type"], &answer["role"]), (&json!("message"), &json!("assistant")));
    assert_eq!(answer["content"][0]["text"].as_str().map(str::len), Some(48));
    assert_eq!(answer["stop_reason"], "end_turn");
    assert_eq!(answer["usage"]["input_tokens"], reply.usage.input);
    assert_eq!(answer["usage"]["output_tokens"], 12);
    assert!(reply.header("request-id").is_some_and(|id| id.starts_with("req_")));

    let mut body = request("Hello");
    body["max_tokens"] = json!(5);
    let answer = object(&post(output(12), "/messages", &body));
    assert_eq!(
        (&answer["stop_reason"], &answer["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(5))
    );
}

#[test]
fn stream_starts_with_input_and_ends_with_full_usage() {
    let mut body = request("Hello");
    body["stream"] = json!(true);
    let reply = post(output(200), "/v1/messages", &body);
    assert_eq!(reply.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let events = events(&reply);
    for (name, data) in &events {
        assert_eq!(data["type"].as_str(), name.as_deref());
    }
    let names: Vec<&str> = events.iter().filter_map(|(name, _)| name.as_deref()).collect();
    assert_eq!(names[..3], ["message_start", "content_block_start", "ping"]);
    assert_eq!(names[names.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    let start = &events[0].1["message"]["usage"];
    assert_eq!(
        (&start["input_tokens"], &start["output_tokens"]),
        (&json!(reply.usage.input), &json!(1))
    );
    let text = events.iter().filter_map(|(_, data)| data["delta"]["text"].as_str());
    assert_eq!(text.map(str::len).sum::<usize>(), 800);
    let end = &events[events.len() - 2].1;
    assert_eq!(
        (&end["usage"]["output_tokens"], &end["delta"]["stop_reason"]),
        (&json!(200), &json!("end_turn"))
    );
}

#[test]
fn input_is_charged_on_arrival_and_output_when_generated() {
    let latency = Duration::from_secs(40);
    let settings = output(4_000).with_itpm(60_000).with_otpm(6_000).with_latency(latency, latency);
    let mut provider = Provider::new(settings);
    let mut body = request(&"word ".repeat(10_000));
    body["max_tokens"] = json!(8_000);
    let left = |reply: &SimulatedReply, name: &str| {
        reply.header(&format!("anthropic-ratelimit-{name}-tokens-remaining")).map(str::to_owned)
    };
    let first = send(&mut provider, 0, &body);
    assert!((10_000..12_000).contains(&first.usage.input), "{:?}", first.usage);
    assert_eq!(left(&first, "input").as_deref(), Some("50000"));
    assert_eq!(left(&first, "output").as_deref(), Some("6000"), "no output is generated yet");
    // After 20 s half is generated, and 100 tokens refill per second.
    let mut small = request("Hello");
    small["metadata"] = json!({"output_tokens": 0});
    let second = send(&mut provider, 20 * SECOND, &small);
    assert_eq!(left(&second, "output").as_deref(), Some("6000"), "2,000 generated, 2,000 refilled");
    assert_eq!(first.charged, first.usage.input + 4_000);
}

#[test]
fn output_beyond_the_limit_becomes_debt() {
    // 60 tokens refill per minute, and 180 are generated immediately. The next request, which needs
    // one token, is admitted after two minutes and one second.
    let mut provider = Provider::new(output(180).with_otpm(60));
    assert_eq!(send(&mut provider, 0, &request("Hello")).status, 200);
    let refused = send(&mut provider, 0, &request("Hello"));
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("121")));
    assert_eq!(refused.header("anthropic-ratelimit-output-tokens-remaining"), Some("0"));
    assert_eq!(send(&mut provider, 121 * SECOND - 1, &request("Hello")).status, 429);
    assert_eq!(send(&mut provider, 121 * SECOND, &request("Hello")).status, 200);
}

#[test]
fn max_tokens_is_not_charged() {
    let mut body = request("Hello");
    body["max_tokens"] = json!(64_000);
    let reply = post(output(5).with_otpm(100).with_itpm(100).with_tpm(100), "/v1/messages", &body);
    assert_eq!((reply.status, reply.charged), (200, reply.usage.input + 5));
}

#[test]
fn cached_prompt_is_free() {
    let mut provider = Provider::new(output(1).with_itpm(5_000));
    let mut body = request("Hello");
    body["system"] = json!([{"type": "text", "text": "word ".repeat(3_000), "cache_control": {"type": "ephemeral"}}]);
    let first = send(&mut provider, 0, &body);
    let usage = first.usage;
    assert_eq!((usage.cache_read, usage.input - usage.cache_write < 100), (0, true), "{usage:?}");
    assert_eq!(first.charged, usage.input + 1);
    // Without the cache, the prompt would not fit a second time.
    let second = send(&mut provider, SECOND, &body);
    assert_eq!(
        (second.status, second.usage.cache_read, second.usage.cache_write),
        (200, usage.cache_write, 0)
    );
    assert_eq!(second.charged, second.usage.input - second.usage.cache_read + 1);
    let stated = &object(&second)["usage"];
    assert_eq!(stated["cache_read_input_tokens"], usage.cache_write);
    assert_eq!(stated["input_tokens"], usage.input - usage.cache_write);
    // The cache entry expires five minutes after its last use.
    assert_eq!(send(&mut provider, SECOND + 5 * MINUTE, &body).usage.cache_read, 0);
}

#[test]
fn refusal_has_anthropic_shape_and_exact_retry_after() {
    let mut provider = Provider::new(output(5).with_rpm(3));
    let now = 1_747_143_680 * SECOND;
    for _ in 0..3 {
        assert_eq!(send(&mut provider, now, &request("Hello")).status, 200);
    }
    let reply = send(&mut provider, now, &request("Hello"));
    let body = object(&reply);
    assert_eq!((reply.status, &body["type"]), (429, &json!("error")));
    assert_eq!(body["error"]["type"], "rate_limit_error");
    let message = body["error"]["message"].as_str().expect("a message");
    assert!(message.contains("limit of 3 requests per minute"), "{message}");
    assert_eq!(body["request_id"].as_str(), reply.header("request-id"));
    assert_eq!(reply.header("retry-after"), Some("20"));
    assert_eq!(reply.header("anthropic-ratelimit-requests-limit"), Some("3"));
    assert_eq!(reply.header("anthropic-ratelimit-requests-remaining"), Some("0"));
    assert_eq!(reply.header("anthropic-ratelimit-requests-reset"), Some("2025-05-13T13:42:20Z"));
    assert_eq!(send(&mut provider, now + 20 * SECOND - 1, &request("Hello")).status, 429);
    assert_eq!(send(&mut provider, now + 20 * SECOND, &request("Hello")).status, 200);
}

#[test]
fn token_headers_are_rounded_to_thousands_and_summed() {
    let settings = output(5).with_itpm(400_000).with_otpm(80_000);
    let reply = post(settings, "/v1/messages", &request(&"word ".repeat(1_700)));
    let header =
        |name: &str| reply.header(&format!("anthropic-ratelimit-{name}")).map(str::to_owned);
    assert_eq!(header("input-tokens-remaining").as_deref(), Some("398000"));
    assert_eq!(header("output-tokens-remaining").as_deref(), Some("80000"));
    assert_eq!(header("tokens-limit").as_deref(), Some("480000"));
    assert_eq!(header("requests-limit"), None);
}

#[test]
fn token_count_is_free_and_matches_usage() {
    let mut provider = Provider::new(output(5).with_rpm(1));
    let mut body = request("What is the capital of France?");
    for _ in 0..3 {
        let path = "/v1/messages/count_tokens";
        let counted = provider.receive(0, path, body.to_string().as_bytes());
        assert_eq!((counted.status, counted.charged), (200, 0));
        body["counted"] = object(&counted)["input_tokens"].clone();
    }
    let answer = object(&send(&mut provider, 0, &body));
    assert_eq!(answer["usage"]["input_tokens"], body["counted"]);
    assert_eq!(send(&mut provider, 0, &body).status, 429);
}

#[test]
fn tools_images_and_documents_are_counted_and_never_fail() {
    let plain = post(output(5), "/v1/messages", &request("Hello")).usage.input;
    let mut body = request("Hello");
    body["tools"] = json!([{"name": "look_up", "input_schema": {"type": "object"}}]);
    body["messages"] = json!([{"role": "user", "content": [
        {"type": "text", "text": "Hello"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "42"}]},
        {"type": "unheard_of", "x": 1},
        17,
    ]}]);
    let reply = post(output(5), "/v1/messages", &body);
    assert_eq!(reply.status, 200);
    assert!(reply.usage.input > plain + 1_600);
}

#[test]
fn malformed_requests_and_faults_use_anthropic_errors() {
    for (body, message) in [
        ("{", "not valid JSON"),
        (r#"{"model": "m", "messages": [1]}"#, "max_tokens: Field required"),
        (r#"{"model": "m", "messages": [], "max_tokens": 1}"#, "at least one message is required"),
        (r#"{"model": "m", "max_tokens": 1}"#, "messages: Field required"),
        (r#"{"messages": [1], "max_tokens": 1}"#, "model: Field required"),
        (r#"{"model": "m", "messages": [1], "max_tokens": 0}"#, "greater than or equal to 1"),
    ] {
        let reply = Provider::new(Settings::default()).receive(0, "/v1/messages", body.as_bytes());
        let error = &object(&reply)["error"];
        assert_eq!((reply.status, &error["type"]), (400, &json!("invalid_request_error")));
        assert!(error["message"].as_str().is_some_and(|m| m.contains(message)), "{error}");
    }
    for (kind, status, error) in [
        (FaultKind::ServerError, 500, "api_error"),
        (FaultKind::Overloaded, 529, "overloaded_error"),
        (FaultKind::Unauthorized, 401, "authentication_error"),
        (FaultKind::InsufficientQuota, 400, "invalid_request_error"),
    ] {
        let settings = Settings::default().with_fault(Fault::every(1, kind));
        let reply = post(settings, "/v1/messages", &request("Hello"));
        assert_eq!((reply.status, &object(&reply)["error"]["type"]), (status, &json!(error)));
        assert_eq!(reply.header("retry-after"), None);
    }
    let reply = post(Settings::default(), "/v1/messages/batches", &request("Hello"));
    assert_eq!((reply.status, &object(&reply)["error"]["type"]), (404, &json!("not_found_error")));
}
