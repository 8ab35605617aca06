//! The limit on spending.

use serde_json::json;
use tollgate_simulate::{OutputSize, Provider, Settings, SpendLimit};

use super::{SECOND, chat, object};

/// Ten output tokens for a dollar, and input for free.
fn settings() -> Settings {
    let spend = SpendLimit { limit: 2_500_000, input_price: 0, output_price: 100_000 * 1_000_000 };
    Settings::default().with_spend(spend).with_output(OutputSize::Fixed(10))
}

#[test]
fn spending_is_limited_in_any_ten_minutes() {
    let mut provider = Provider::new(settings());
    let body = chat("Hello").to_string();
    let mut status =
        |at| provider.receive(at * SECOND, "/v1/chat/completions", body.as_bytes()).status;
    assert_eq!([status(0), status(60), status(61)], [200, 200, 429]);
    assert_eq!([status(599), status(600), status(601), status(660)], [429, 200, 429, 200]);
}

#[test]
fn spend_refusals_have_the_format_of_the_provider() {
    let gemini = json!({"contents": [{"parts": [{"text": "Hello"}]}]});
    let messages = json!({
        "model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]
    });
    for (path, body, kind, expected) in [
        ("/v1beta/models/m:generateContent", gemini, "/error/status", "RESOURCE_EXHAUSTED"),
        ("/v1/messages", messages, "/error/type", "rate_limit_error"),
        ("/v1/chat/completions", chat("Hello"), "/error/type", "spend"),
    ] {
        let mut provider = Provider::new(settings());
        let body = body.to_string();
        let replies = [0, 0, 0].map(|at| provider.receive(at, path, body.as_bytes()));
        assert_eq!(replies.each_ref().map(|reply| reply.status), [200, 200, 429], "{path}");
        assert_eq!(object(&replies[2]).pointer(kind), Some(&json!(expected)), "{path}");
    }
}

#[test]
fn input_and_output_cost_their_price() {
    let mut provider = Provider::new(Settings::default().with_output(OutputSize::Fixed(10)));
    let body = chat("Hello there").to_string();
    let path = "/v1/chat/completions";
    let input = provider.receive(0, path, body.as_bytes()).usage.input;
    let cost = input * 3 + 10 * 15;
    for (limit, status) in [(cost, 200), (cost - 1, 429)] {
        let spend = SpendLimit { limit, input_price: 3_000_000, output_price: 15_000_000 };
        let mut provider = Provider::new(settings().with_spend(spend));
        assert_eq!(provider.receive(0, path, body.as_bytes()).status, status);
    }
}
