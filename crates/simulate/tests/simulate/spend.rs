//! The limit on spending.

use std::time::Duration;

use paceline_simulate::{OutputSize, Provider, Settings, SimulatedUsage, SpendLimit};
use serde_json::json;

use super::{SECOND, chat, object};

const CHAT: &str = "/v1/chat/completions";

/// Ten output tokens for a dollar, and input for free; the model `unknown` has no price.
fn settings() -> Settings {
    let cost = |_: &str, model: &str, usage: &SimulatedUsage| {
        (model != "unknown").then_some(usage.output * 100_000)
    };
    Settings::default()
        .with_spend(SpendLimit::new(2_500_000, cost))
        .with_output(OutputSize::Fixed(10))
}

fn gemini() -> serde_json::Value {
    json!({"contents": [{"parts": [{"text": "Hello"}]}]})
}

#[test]
fn spending_is_limited_in_any_ten_minutes() {
    let mut provider = Provider::new(settings());
    let body = chat("Hello").to_string();
    let mut status = |at| provider.receive(at * SECOND, CHAT, body.as_bytes()).status;
    assert_eq!([status(0), status(60), status(61)], [200, 200, 429]);
    assert_eq!([status(599), status(600), status(601), status(660)], [429, 200, 429, 200]);
}

#[test]
fn window_has_its_part_of_the_spending_limit() {
    let mut provider = Provider::new(settings().with_window(Duration::from_secs(300)));
    let body = chat("Hello").to_string();
    let mut status = |at| provider.receive(at * SECOND, CHAT, body.as_bytes()).status;
    assert_eq!([status(0), status(1), status(299), status(300)], [200, 429, 429, 200]);
}

#[test]
fn models_of_an_api_share_the_spending_limit() {
    let mut provider = Provider::new(settings());
    let body = gemini().to_string();
    let mut status = |model: &str| {
        let path = format!("/v1beta/models/{model}:generateContent");
        provider.receive(0, &path, body.as_bytes()).status
    };
    assert_eq!(["a", "b", "c", "a"].map(&mut status), [200, 200, 429, 429]);
    let other = provider.receive(0, CHAT, chat("Hello").to_string().as_bytes());
    assert_eq!(other.status, 200);
}

#[test]
fn refused_request_is_charged_to_no_limit() {
    let mut provider = Provider::new(settings().with_rpm(3));
    let body = chat("Hello").to_string();
    let mut status = |at| provider.receive(at, CHAT, body.as_bytes()).status;
    assert_eq!([status(0), status(0), status(0)], [200, 200, 429]);
    // Of three requests, the third was refused by the limit on spending.
    let mut other = chat("Hello");
    other["model"] = json!("other");
    let reply = provider.receive(0, CHAT, other.to_string().as_bytes());
    assert_eq!(reply.header("x-ratelimit-remaining-requests"), Some("3"));
    let reply = provider.receive(0, CHAT, body.as_bytes());
    assert_eq!(reply.header("x-ratelimit-remaining-requests"), Some("1"));
    let stats = provider.stats().total;
    assert_eq!((stats.admitted, stats.refused, stats.charged_micro_usd), (2, 3, 2_000_000));
}

#[test]
fn spend_refusals_have_the_format_of_the_provider() {
    let messages = json!({
        "model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]
    });
    for (path, body, kind, expected) in [
        ("/v1beta/models/m:generateContent", gemini(), "/error/status", "RESOURCE_EXHAUSTED"),
        ("/v1/messages", messages, "/error/type", "rate_limit_error"),
        (CHAT, chat("Hello"), "/error/type", "spend"),
    ] {
        let mut provider = Provider::new(settings());
        let body = body.to_string();
        let replies = [0, 0, 0].map(|at| provider.receive(at, path, body.as_bytes()));
        assert_eq!(replies.each_ref().map(|reply| reply.status), [200, 200, 429], "{path}");
        assert_eq!(object(&replies[2]).pointer(kind), Some(&json!(expected)), "{path}");
    }
}

/// Google documents the status of this refusal, but no quota that it names.
#[test]
fn gemini_names_no_quota_of_spending() {
    let mut provider = Provider::new(settings());
    let (path, body) = ("/v1beta/models/m:generateContent", gemini().to_string());
    let replies = [0, 0, 0].map(|at| provider.receive(at, path, body.as_bytes()));
    let error = object(&replies[2])["error"].clone();
    assert_eq!((&error["code"], &error["status"]), (&json!(429), &json!("RESOURCE_EXHAUSTED")));
    let types: Vec<_> = (error["details"].as_array().expect("details").iter())
        .map(|detail| detail["@type"].as_str().expect("a type").rsplit('.').next())
        .collect();
    assert_eq!(types, [Some("Help"), Some("RetryInfo")]);
    assert_eq!(error["details"][1]["retryDelay"], "600s");
    let message = error["message"].as_str().expect("a message");
    assert!(message.ends_with("Please retry in 600s.") && !message.contains("metric"), "{message}");
}

#[test]
fn model_without_price_is_unknown() {
    let messages = json!({
        "model": "unknown", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]
    });
    let mut completion = chat("Hello");
    completion["model"] = json!("unknown");
    for (path, body, pointer, expected) in [
        ("/v1beta/models/unknown:generateContent", gemini(), "/error/status", "NOT_FOUND"),
        ("/v1/messages", messages, "/error/type", "not_found_error"),
        (CHAT, completion, "/error/code", "model_not_found"),
    ] {
        let mut provider = Provider::new(settings());
        let reply = provider.receive(0, path, body.to_string().as_bytes());
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(object(&reply).pointer(pointer), Some(&json!(expected)), "{path}");
        assert_eq!((provider.stats().total.failed, provider.stats().total.received), (1, 1));
    }
}

#[test]
fn cost_is_that_of_the_reported_usage() {
    let cost = |api: &str, _: &str, usage: &SimulatedUsage| match api {
        "openai" => Some(usage.input * 3 + usage.output * 15),
        _ => None,
    };
    let spend = |limit| Settings::default().with_spend(SpendLimit::new(limit, cost));
    let mut provider = Provider::new(spend(1_000_000).with_output(OutputSize::Fixed(10)));
    let body = chat("Hello there").to_string();
    let reply = provider.receive(0, CHAT, body.as_bytes());
    let expected = reply.usage.input * 3 + 10 * 15;
    assert_eq!(reply.spent, expected);
    for (limit, status) in [(expected, 200), (expected - 1, 429)] {
        let mut provider = Provider::new(spend(limit).with_output(OutputSize::Fixed(10)));
        assert_eq!(provider.receive(0, CHAT, body.as_bytes()).status, status);
    }
}
