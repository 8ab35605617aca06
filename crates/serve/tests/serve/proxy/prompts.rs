//! Prompts that the provider charges otherwise than by their size: read from its cache, or only counted.

use serde_json::{Value, json};

use super::rig::{Proxy, TestUpstream};

/// Sends a request, answers it with a 200 and this body, and returns the status that its client gets.
async fn exchange(
    proxy: &Proxy,
    up: &mut TestUpstream,
    path: &str,
    sent: &Value,
    answer: &str,
) -> u16 {
    let mut sent = tokio::spawn(proxy.post(path, sent.to_string()).send());
    tokio::select! {
        request = up.request() => request.answer("200 OK", "", answer).await,
        refused = &mut sent => return refused.unwrap().unwrap().status().as_u16(),
    }
    let response = sent.await.unwrap().unwrap();
    let status = response.status().as_u16();
    response.bytes().await.unwrap();
    status
}

/// The prompt of each turn is 10,000 tokens longer, and all but these are read from the cache.
#[tokio::test]
async fn cached_conversation_grows_beyond_the_limit() {
    let mut up = TestUpstream::start().await;
    let quotas = "quotas: {claude-x: {itpm: 40000}}";
    let (proxy, clock) = Proxy::timed(up.addr, "anthropic", "mode: reject", quotas).await;
    let turn = |number: usize, is_marked: bool| {
        let mut text = json!({"type": "text", "text": "word ".repeat(number * 8_000)});
        if is_marked {
            text["cache_control"] = json!({"type": "ephemeral"});
        }
        let messages = json!([{"role": "user", "content": [text]}]);
        json!({"model": "claude-x", "max_tokens": 50, "messages": messages})
    };
    let path = "/up/v1/messages";
    // Nothing shows that this one is in the cache.
    assert_eq!(exchange(&proxy, &mut up, path, &turn(12, false), "").await, 400);
    for number in 1..=12 {
        let usage = json!({"input_tokens": 40, "cache_creation_input_tokens": 9_960,
            "cache_read_input_tokens": (number - 1) * 10_000, "output_tokens": 5});
        let answer = json!({"type": "message", "content": [], "usage": usage}).to_string();
        let status = exchange(&proxy, &mut up, path, &turn(number, true), &answer).await;
        assert_eq!((status, proxy.used("claude-x")), (200, 10_000), "turn {number}");
        clock.advance(std::time::Duration::from_secs(20));
    }
}

#[tokio::test]
async fn token_counts_take_nothing_of_the_models_limits() {
    let text = "word ".repeat(8_000);
    let chat = json!({"messages": [{"role": "user", "content": text}]});
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": text}]}]});
    for (provider, path, body) in [
        ("anthropic", "/up/v1/messages/count_tokens", &chat),
        ("gemini", "/up/v1beta/models/m:countTokens", &contents),
        ("openai", "/up/v1/responses/input_tokens", &json!({"input": text})),
    ] {
        let mut up = TestUpstream::start().await;
        let quotas = "quotas: {m: {rpd: 1, tpm: 9000, itpm: 9000, otpm: 9000}}";
        let upstreams = [("up", up.addr, provider)];
        let proxy = Proxy::with(&upstreams, "mode: reject", quotas).await;
        let mut body = body.clone();
        body["model"] = "m".into();
        let answer = r#"{"input_tokens": 10000, "totalTokens": 10000}"#;
        for _ in 0..3 {
            assert_eq!(exchange(&proxy, &mut up, path, &body, answer).await, 200, "{provider}");
        }
        assert_eq!(proxy.all_used("m"), [0; 4], "{provider}");
    }
}

/// Moonshot charges the prompt and `max_tokens`.
#[tokio::test]
async fn usage_in_a_choice_of_a_stream_is_charged() {
    let mut up = TestUpstream::start().await;
    let quotas = "quotas: {kimi-k2.6: {tpd: 1000, limits: [{dimension: output_tokens, limit: 1000, window: 1d}]}}";
    let proxy = Proxy::with(&[("up", up.addr, "moonshot")], "", quotas).await;
    let body = json!({"model": "kimi-k2.6", "max_tokens": 20, "stream": true,
        "messages": [{"role": "user", "content": "Hello"}]});
    let sent = tokio::spawn(proxy.post("/up/v1/chat/completions", body.to_string()).send());
    let mut request = up.request().await;
    request.begin_chunks().await;
    let choice = |delta: &str, more: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}{more}}}]}}\n\n")
    };
    let usage = r#","finish_reason":"stop","usage":{"prompt_tokens":130,"completion_tokens":7,"total_tokens":137}"#;
    let stream = choice(r#"{"content":"Hi"}"#, "") + &choice("{}", usage) + "data: [DONE]\n\n";
    request.chunk(&stream).await;
    request.write("0\r\n\r\n").await;
    assert_eq!(sent.await.unwrap().unwrap().text().await.unwrap(), stream);
    assert_eq!(proxy.all_used("kimi-k2.6"), [130 + 20, 7]);
}
