//! The form of refusals: headers, delays, and names of limits.

use paceline_simulate::{Provider, RetryAfter, Settings, SimulatedReply};
use serde_json::json;

use super::{SECOND, chat, object};

const PATHS: [&str; 3] =
    ["/v1/chat/completions", "/v1/messages", "/v1beta/models/gemini-2.5-flash:generateContent"];

/// Returns the refusal of the second request to a path, 1.5 s before it fits.
fn refusal(settings: Settings, path: &str) -> SimulatedReply {
    let mut body = chat("Hello");
    body["max_tokens"] = json!(50);
    body["contents"] = json!([{"parts": [{"text": "Hello"}]}]);
    let body = body.to_string();
    let mut provider = Provider::new(settings.with_rpm(1));
    assert_eq!(provider.receive(0, path, body.as_bytes()).status, 200);
    let reply = provider.receive(58 * SECOND + SECOND / 2, path, body.as_bytes());
    assert_eq!(reply.status, 429);
    reply
}

/// Returns the delays of a refusal: `retry-after`, `retry-after-ms`, and whether its body states one.
fn delays(retry_after: RetryAfter, path: &str) -> (Option<String>, Option<String>, bool) {
    let reply = refusal(Settings::default().with_retry_after(retry_after), path);
    let header = |name| reply.header(name).map(str::to_owned);
    let body = object(&reply).to_string();
    let is_in_body = body.contains("Please try again in") || body.contains("retryDelay");
    (header("retry-after"), header("retry-after-ms"), is_in_body)
}

#[test]
fn delay_takes_the_form_of_the_settings() {
    let text = |text: &str| Some(text.to_owned());
    let [openai, anthropic, gemini] = PATHS;
    for (retry_after, path, expected) in [
        (RetryAfter::Auto, openai, (text("2"), text("1500"), true)),
        (RetryAfter::Auto, anthropic, (text("2"), None, false)),
        (RetryAfter::Auto, gemini, (None, None, true)),
        (RetryAfter::None, openai, (None, None, false)),
        (RetryAfter::None, anthropic, (None, None, false)),
        (RetryAfter::None, gemini, (None, None, false)),
        (RetryAfter::Milliseconds, openai, (None, text("1500"), true)),
        (RetryAfter::Milliseconds, anthropic, (None, text("1500"), false)),
        (RetryAfter::Seconds(0), openai, (text("0"), text("0"), true)),
        (RetryAfter::Seconds(60), openai, (text("60"), text("60000"), true)),
        (RetryAfter::Seconds(60), anthropic, (text("60"), None, false)),
        (RetryAfter::Seconds(60), gemini, (None, None, true)),
    ] {
        assert_eq!(delays(retry_after, path), expected, "{retry_after:?} {path}");
    }
    let gemini = refusal(Settings::default().with_retry_after(RetryAfter::Seconds(60)), gemini);
    assert!(object(&gemini).to_string().contains(r#""retryDelay":"60s""#));
}

#[test]
fn request_above_the_limit_has_no_delay() {
    let settings = Settings::default().with_tpm(10).with_retry_after(RetryAfter::Seconds(60));
    let reply = super::post(settings, PATHS[0], &chat(&"word ".repeat(100)));
    assert_eq!((reply.status, reply.header("retry-after")), (429, None));
    let message = object(&reply)["error"]["message"].to_string();
    assert!(message.contains("Request too large"), "{message}");
}

#[test]
fn limit_headers_are_omitted() {
    for path in &PATHS[..2] {
        let is_limit = |(name, _): &&(&str, String)| name.contains("ratelimit");
        let stated = refusal(Settings::default(), path);
        assert!(stated.headers.iter().any(|header| is_limit(&header)), "{path}");
        let silent = refusal(Settings::default().without_limit_headers(), path);
        assert!(!silent.headers.iter().any(|header| is_limit(&header)), "{path}");
        assert_eq!(silent.header("retry-after"), Some("2"), "{path}");
    }
}

#[test]
fn unnamed_refusal_names_no_limit() {
    for path in PATHS {
        let reply = refusal(Settings::default().with_unnamed_refusals(), path);
        let body = object(&reply).to_string().to_lowercase();
        for name in ["requests", "tokens", "per min", "rpm", "quotavalue"] {
            assert!(!body.contains(name), "{path}: {name} in {body}");
        }
    }
}
