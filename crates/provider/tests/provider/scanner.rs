//! Usage and errors read from response bodies in chunks.

use paceline_limiter::quota::Usage;
use paceline_provider::{OPENAI, Scanned, Scanner};

use super::recordings::scan;

#[test]
fn usage_of_each_format_is_read() {
    for (name, content_type, body, expected) in BODIES {
        let scanned = whole(content_type, body);
        assert_eq!(scanned.usage, *expected, "{name}");
        assert_eq!(scanned.error, None, "{name}");
    }
}

#[test]
fn format_is_detected_from_the_first_bytes() {
    for (name, _, body, expected) in BODIES {
        for content_type in ["", "application/json", "text/event-stream; charset=utf-8"] {
            assert_eq!(whole(content_type, body).usage, *expected, "{name} as {content_type}");
        }
    }
}

#[test]
fn scan_is_independent_of_chunk_boundaries() {
    for (name, content_type, body) in
        BODIES.iter().map(|b| (b.0, b.1, b.2)).chain(ERRORS.iter().map(|e| ("error", e.0, e.1)))
    {
        let expected = whole(content_type, body);
        assert_eq!(scan(OPENAI, content_type, body.as_bytes(), || 1), expected, "{name}");
        for at in 1..body.len() {
            let mut pieces = [at, usize::MAX].into_iter();
            let cut = scan(OPENAI, content_type, body.as_bytes(), || pieces.next().unwrap());
            assert_eq!(cut, expected, "{name} cut at {at}");
        }
    }
}

#[test]
fn usage_is_read_only_at_stated_path() {
    for body in [
        r#"{"choices": [{}, {"usage": {"prompt_tokens": 9, "completion_tokens": 9}}]}"#,
        r#"{"choices": [{"message": {"content": "{\"usage\": {\"prompt_tokens\": 9}}"}}]}"#,
        r#"{"message": "\"usage\": {\"prompt_tokens\": 9}"}"#,
        r#"{"metadata": {"usage": {"prompt_tokens": 9}}}"#,
        r#"{"response": {"output": {"usage": {"input_tokens": 9}}}}"#,
        r#"{"usage": [{"prompt_tokens": 9}]}"#,
        r#"{"usage": {"prompt_tokens_details": {"prompt_tokens": 9}}}"#,
        r#"{"prompt_tokens": 9, "usage": null}"#,
        r#"{"usage": {"prompt_tokens": "9"}}"#,
        r#"{"usage": {"prompt_tokens": -9}}"#,
        r#"{"usage": {"prompt_tokens": 9e2}}"#,
        r#"{"usage\u0000": {"prompt_tokens": 9}}"#,
        r#"{"\nusage": {"prompt_tokens": 9}}"#,
        r#"{"a_key_that_is_longer_than_any_wanted_usage": {"prompt_tokens": 9}}"#,
        r#"{"usage" {"prompt_tokens": 9}}"#,
        r#"{"usage": {"prompt_tokens": 9"#,
        r#"plain text "usage": {"prompt_tokens": 9}"#,
    ] {
        assert_eq!(whole("application/json", body).usage, None, "{body}");
    }
}

#[test]
fn unusual_but_valid_json_is_read() {
    let body = "\u{feff} {\"id\" :\"\\\\\\\"\",\r\n\t\"x\":[[{\"}\":\"]\"}],\"\\\"{\"],\"usage\"\n: { \
                \"prompt_tokens\" :\t12.0 ,\"completion_tokens\":3}} \n";
    assert_eq!(whole("application/json", body).usage, usage(12, 3, 0));
}

#[test]
fn later_usage_replaces_earlier_usage() {
    let body = "data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\n\
                data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n\
                data: {\"usage\":null}\n\ndata: [DONE]\n\n";
    assert_eq!(whole("text/event-stream", body).usage, usage(5, 2, 0));
}

#[test]
fn invalid_event_does_not_affect_the_next() {
    let body = "data: {\"usage\": {\"prompt_tokens\": 1, nonsense\n\n\
                data: {\"usage\": {\"prompt_tokens\": 2}}\n\n";
    assert_eq!(whole("text/event-stream", body).usage, usage(2, 0, 0));
}

#[test]
fn error_in_successful_response_is_found() {
    for (content_type, body, code, message) in ERRORS {
        let error = whole(content_type, body).error.unwrap_or_else(|| panic!("{body}"));
        assert_eq!((error.code(), error.message()), (*code, *message), "{body}");
    }
}

#[test]
fn bodies_without_error_have_none() {
    for body in [
        r#"{"error": null, "message": "hello", "code": 7, "type": "message"}"#,
        r#"{"response": {"error": null}}"#,
        r#"{"choices": [{"error": {"message": "x"}}], "object": "chat.completion"}"#,
    ] {
        assert_eq!(whole("application/json", body).error, None, "{body}");
    }
}

#[test]
fn huge_body_is_read_in_bounded_memory() {
    let row = format!("{{\"embedding\":[{}-0.5],\"index\":0}},", "-0.0123456789,".repeat(1_536));
    let text = format!("{{\"content\":\"{}\"}},", "a \\\"usage\\\": {\\u00e9} ".repeat(1_000));
    let mut scanner = Scanner::new(OPENAI, Some("application/json"));
    scanner.feed(b"{\"object\":\"list\",\"data\":[");
    for _ in 0..400 {
        scanner.feed(row.as_bytes());
        scanner.feed(text.as_bytes());
        assert!(scanner.held_bytes() < BOUND);
    }
    scanner.feed(format!("{{}}],\"{}\":1,", "k".repeat(1 << 20)).as_bytes());
    scanner.feed(format!("\"error\":{{\"message\":\"{}\"}},", "m".repeat(1 << 20)).as_bytes());
    scanner.feed(b"\"usage\":{\"prompt_tokens\":8,\"total_tokens\":8}}");
    assert!(scanner.held_bytes() < BOUND, "{}", scanner.held_bytes());
    assert_eq!(scanner.finish().usage, usage(8, 0, 0));
}

#[test]
fn longest_error_is_read_in_bounded_memory() {
    for text in [&b"m"[..], b"\xff", "\u{20ac}".as_bytes()] {
        let text = text.repeat(9_000);
        let mut scanner = Scanner::new(OPENAI, Some("application/json"));
        for part in [
            &b"{\"message\":\""[..],
            &text,
            b"\",\"base_resp\":{\"status_msg\":\"",
            &text,
            b"\"},\"error\":{\"message\":\"",
            &text,
            b"\",\"x\":\"",
            &text,
            b"\"}}",
        ] {
            scanner.feed(part);
            assert!(scanner.held_bytes() < BOUND, "{}", scanner.held_bytes());
        }
        assert!(scanner.finish().error.is_some());
    }
}

#[test]
fn repeated_events_hold_constant_memory() {
    let event = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"type\":\"delta\",\
                 \"choices\":[{\"delta\":{\"content\":\" hi\"}}],\"usage\":null}\n\n";
    let mut scanner = Scanner::new(OPENAI, Some("text/event-stream"));
    scanner.feed(event.as_bytes());
    let held = scanner.held_bytes();
    for _ in 0..10_000 {
        scanner.feed(event.as_bytes());
    }
    assert_eq!(scanner.held_bytes(), held);
}

fn whole(content_type: &str, body: &str) -> Scanned {
    scan(OPENAI, content_type, body.as_bytes(), || usize::MAX)
}

const fn usage(input: u64, output: u64, cache_read: u64) -> Option<Usage> {
    Some(Usage { input, output, cache_read, cache_write: 0, long_cache_write: 0 })
}

/// The maximum number of bytes that a scanner holds.
const BOUND: usize = 8 * 1024;

/// Name, content type, body, usage.
const BODIES: &[(&str, &str, &str, Option<Usage>)] = &[
    (
        "chat completion",
        "application/json",
        r#"{"id":"x","choices":[{"message":{"content":"a \"usage\": 1 \u00e9 \\"}}],"usage":
           {"prompt_tokens":12,"completion_tokens":34,"total_tokens":46,
            "prompt_tokens_details":{"audio_tokens":0,"cached_tokens":8}}}"#,
        usage(12, 34, 8),
    ),
    (
        "response",
        "application/json",
        r#"{"error":null,"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":2},
            "output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":12}}"#,
        usage(7, 5, 2),
    ),
    (
        "embeddings with a total only",
        "application/json",
        r#"{"object":"list","data":[{"embedding":[0.1,-2e-3]}],"usage":{"total_tokens":9}}"#,
        usage(9, 0, 0),
    ),
    (
        "stream of a chat",
        "text/event-stream",
        ": keep-alive\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"usage\"}}],\"usage\":null}\n\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n\
         data: [DONE]\n\n",
        usage(3, 4, 0),
    ),
    (
        "stream with carriage returns, a byte order mark and data in several lines",
        "text/event-stream",
        "\u{feff}: hi\r\n\r\nid: 1\rdata:{\"usage\":\r\ndata: {\"prompt_tokens\":3,\rdata:\"completion_tokens\":4}}\r\r\
         database: {\"usage\":{\"prompt_tokens\":99}}\n\ndata\n\n",
        usage(3, 4, 0),
    ),
    (
        "stream of responses",
        "text/event-stream",
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n\
         event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"error\":null,\"output\":[{}],\
         \"usage\":{\"input_tokens\":5,\"input_tokens_details\":{\"cached_tokens\":1},\"output_tokens\":6}}}\n\n",
        usage(5, 6, 1),
    ),
    (
        "stream without a final empty line",
        "text/event-stream",
        "data: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}",
        usage(3, 4, 0),
    ),
    (
        "stream without usage",
        "text/event-stream",
        "data: {\"choices\":[]}\n\ndata: [DONE]\n\n",
        None,
    ),
    ("empty body", "", "", None),
];

/// Content type, body, code, message.
const ERRORS: &[(&str, &str, Option<&str>, &str)] = &[
    (
        "text/event-stream",
        "data: {\"error\":{\"message\":\"busy \\ud83d\\ude00 \\\"now\\\"\\n\",\"type\":\"server_error\",\"code\":429}}\n\n",
        Some("429"),
        "busy 😀 \"now\"\n",
    ),
    (
        "text/event-stream",
        "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"}\n\n",
        Some("rate_limit_exceeded"),
        "slow",
    ),
    (
        "text/event-stream",
        "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"sorry\"}}}\n\n",
        Some("server_error"),
        "sorry",
    ),
    ("application/json", "{\"error\":\"model not found\"}", None, "model not found"),
];
