//! Count requests and their responses.

use http::StatusCode;
use paceline_provider::count_tokens::{
    Answer, CannotCount, CountTokensError, LONGEST_ANSWER, LONGEST_ERROR, request,
};
use paceline_provider::{ANTHROPIC, COMPATIBLE, GEMINI, OPENAI, Profile, VERTEX};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn count_request_omits_unsupported_members() {
    let gemini = json!({"contents": [1], "generationConfig": {"temperature": 1}});
    assert_eq!(
        count_request(
            GEMINI,
            "https://g/v1beta/models/gemini-2.5-pro:streamGenerateContent?key=k",
            &gemini
        ),
        (
            "https://g/v1beta/models/gemini-2.5-pro:countTokens".to_owned(),
            json!({"generateContentRequest": {"model": "models/gemini-2.5-pro", "contents": [1],
                "generationConfig": {"temperature": 1}}})
        )
    );
    let vertex = json!({"contents": [1], "tools": [2], "safetySettings": [3]});
    assert_eq!(
        count_request(VERTEX, "https://v/publishers/google/models/m:generateContent", &vertex),
        (
            "https://v/publishers/google/models/m:countTokens".to_owned(),
            json!({"contents": [1], "tools": [2]})
        )
    );
    let messages = json!({"model": "m", "messages": [1], "system": "s", "max_tokens": 5,
        "stream": true, "temperature": 1, "metadata": {}});
    assert_eq!(
        count_request(ANTHROPIC, "https://a/v1/messages?beta=true", &messages),
        (
            "https://a/v1/messages/count_tokens".to_owned(),
            json!({"model": "m", "messages": [1], "system": "s"})
        )
    );
    let responses = json!({"model": "m", "input": "i", "max_output_tokens": 5, "store": true});
    assert_eq!(
        count_request(OPENAI, "https://o/v1/responses", &responses),
        ("https://o/v1/responses/input_tokens".to_owned(), json!({"model": "m", "input": "i"}))
    );
}

#[test]
fn chat_is_converted_to_a_response_for_counting() {
    let chat = json!({"model": "m", "max_tokens": 5, "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [
            {"type": "text", "text": "t"},
            {"type": "image_url", "image_url": {"url": "u"}}
        ]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ]},
        {"role": "tool", "tool_call_id": "1", "content": "o"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]}
    ], "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]});
    let (url, body) = count_request(OPENAI, "https://o/v1/chat/completions", &chat);
    assert_eq!(url, "https://o/v1/responses/input_tokens");
    let expected = json!({"model": "m", "input": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [
            {"type": "input_text", "text": "t"},
            {"type": "input_image", "image_url": "u", "detail": "auto"}
        ]},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "o"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
    ], "tools": [{"type": "function", "name": "f", "parameters": {}}]});
    assert_eq!(body, expected);
}

#[test]
fn uncountable_requests_state_the_reason() {
    let error_of = |profile, url, body: &str| request(profile, url, body.as_bytes()).unwrap_err();
    let no_endpoint = |provider| CannotCount::NoEndpoint { provider };
    assert_eq!(error_of(COMPATIBLE, "https://x/v1/messages", "{}"), no_endpoint("compatible"));
    assert_eq!(error_of(OPENAI, "https://o/v1/embeddings", "{}"), no_endpoint("openai"));
    assert_eq!(error_of(GEMINI, "https://g/v1beta/models", "{}"), no_endpoint("gemini"));
    assert_eq!(error_of(OPENAI, "https://o/v1/responses", "[]"), CannotCount::Unreadable);
    assert_eq!(error_of(OPENAI, "ht tp://o/v1/responses", "{}"), CannotCount::InvalidUrl);
    let audio = r#"{"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}"#;
    let error = error_of(OPENAI, "https://o/v1/chat/completions", audio);
    assert_eq!(
        error.to_string(),
        "content of type `input_audio`: the provider's endpoint can't count it"
    );
}

#[test]
fn count_response_is_bounded() {
    let mut answer = Answer::new(StatusCode::OK);
    assert_eq!(answer.feed(&vec![b' '; LONGEST_ANSWER]), Ok(()));
    let too_long = CountTokensError::TooLong { limit: LONGEST_ANSWER };
    assert_eq!(answer.feed(b" "), Err(too_long));

    let mut answer = Answer::new(StatusCode::FORBIDDEN);
    assert_eq!(answer.feed(&vec![b' '; LONGEST_ERROR - 1]), Ok(()));
    assert!(!answer.is_full());
    assert_eq!(answer.feed(br#"{"error": "m"}"#), Ok(()));
    assert!(answer.is_full());
    // The error was beyond the bound.
    let error = answer.finish().unwrap_err();
    assert_eq!(error.to_string(), "the provider refused to count tokens: HTTP 403 Forbidden: ");
}

#[test]
fn answer_without_a_count_is_an_error() {
    for body in ["", "{}", "7", r#"{"totalTokens": -1}"#, r#"{"input_tokens": "7"}"#, "<html>"] {
        let mut answer = Answer::new(StatusCode::OK);
        answer.feed(body.as_bytes()).unwrap();
        assert_eq!(answer.finish(), Err(CountTokensError::NoCount), "{body}");
    }
}

proptest! {
    #[test]
    fn chat_of_any_shape_is_countable_or_unsupported(message in message(), tools in message()) {
        let body = json!({"messages": [message.clone()], "tools": [tools]});
        let count_request = request(OPENAI, "https://o/v1/chat/completions", body.to_string().as_bytes());
        let unsupported = matches!(count_request, Err(CannotCount::Unsupported { .. }));
        prop_assert!(count_request.is_ok() || unsupported);
    }
}

/// Generates an object of the relevant members with values of any kind.
fn message() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(null)), Just(json!("text")), Just(json!(7)), Just(json!([]))];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop::sample::select(
            &["role", "content", "tool_calls", "type", "function", "image_url", "text"][..],
        );
        prop_oneof![
            prop::collection::hash_map(key, inner.clone(), 0..4)
                .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
            prop::collection::vec(inner, 0..3).prop_map(Value::Array),
        ]
    })
}

fn count_request(profile: Profile, url: &str, body: &Value) -> (String, Value) {
    let count_request = request(profile, url, body.to_string().as_bytes()).unwrap();
    assert_eq!(count_request.method(), http::Method::POST);
    (count_request.uri().to_string(), serde_json::from_slice(count_request.body()).unwrap())
}
