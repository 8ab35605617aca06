//! The usage of streams that the proxy requests and its clients don't see.

use super::rig::{Proxy, TestUpstream, http};

const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\"usage\":null}\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const OPTION: &str = r#""stream_options":{"include_usage":true}"#;

/// Returns the request that the upstream gets for one with these fields, and the response that the client
/// gets for a stream with a usage.
async fn exchange(proxy: &Proxy, up: &mut TestUpstream, query: &str, fields: &str) -> [String; 2] {
    let body = format!(r#"{{"model": "gpt-4o", "max_tokens": 5, {fields} "messages": []}}"#);
    let post = http().post(proxy.url(&format!("/up/v1/chat/completions{query}")));
    let sent = tokio::spawn(post.header("content-type", "application/json").body(body).send());
    let mut request = up.request().await;
    let text = String::from_utf8(request.body.clone()).unwrap();
    request.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n").await;
    let stream = [HI, USAGE, DONE].concat();
    request.write(format!("content-length: {}\r\n\r\n{stream}", stream.len())).await;
    let response = sent.await.unwrap().unwrap();
    let text_of_response = response.text().await.unwrap();
    drop(request);
    [text, text_of_response]
}

const STREAM: &str = r#""stream": true,"#;

#[tokio::test]
async fn usage_of_streams_is_requested_and_removed() {
    let mut up = TestUpstream::start().await;
    let quotas =
        "quotas: {gpt-4o: {limits: [{dimension: output_tokens, limit: 1000, window: 1h}]}}";
    let proxy = Proxy::to(up.addr, quotas).await;
    let [request, response] = exchange(&proxy, &mut up, "", STREAM).await;
    assert!(request.starts_with(&format!("{{{OPTION},")), "{request}");
    assert_eq!(response, [HI, DONE].concat());
    // A client that asks for it keeps its chunk and its bytes.
    let own = r#""stream": true, "stream_options": {"include_usage": true},"#;
    let [request, response] = exchange(&proxy, &mut up, "", own).await;
    assert!(request.contains(own), "{request}");
    assert_eq!(response, [HI, USAGE, DONE].concat());
    // A request without a stream is not changed.
    let [request, response] = exchange(&proxy, &mut up, "", "").await;
    assert!(!request.contains("include_usage"), "{request}");
    assert_eq!(response, [HI, USAGE, DONE].concat());
}

#[tokio::test]
async fn usage_is_requested_only_where_it_is_accepted() {
    for (provider, query, is_requested) in [
        ("openai", "", true),
        ("vllm", "", true),
        ("azure", "?api-version=2024-10-21", true),
        ("azure", "?api-version=2024-02-01", false),
        ("compatible-usage", "", false),
        ("groq", "", false),
        ("mistral", "", false),
    ] {
        let mut up = TestUpstream::start().await;
        let proxy = Proxy::with(&[("up", up.addr, provider)], "", "").await;
        let [request, response] = exchange(&proxy, &mut up, query, STREAM).await;
        assert_eq!(request.contains(OPTION), is_requested, "{provider} {query}: {request}");
        assert_eq!(response.contains("prompt_tokens"), !is_requested, "{provider} {query}");
    }
}

/// OpenAI bills the usage, which a stream states only where it is requested.
#[tokio::test]
async fn budget_is_charged_the_requested_usage() {
    let mut up = TestUpstream::start().await;
    let quotas = "quotas: {gpt-4o: {usd_per_day: 1}}";
    let proxy = Proxy::to(up.addr, quotas).await;
    exchange(&proxy, &mut up, "", STREAM).await;
    // $2.50 and $10 per million tokens, of 9 and 3.
    assert_eq!(proxy.used("gpt-4o"), (9 * 25 + 3 * 100_u64).div_ceil(10));
}
