//! Budgets of proxied requests: those without a price aren't forwarded, unless they are known to be free.

use paceline::quota::Cost;
use reqwest::Method;

use super::rig::{Proxy, TestUpstream, http, json};

const SCOPES: &str = "scopes: [model, {key: account}]";
const QUOTAS: &str = "quotas: {account: {usd_per_day: 0.1}}";

#[tokio::test]
async fn request_without_price_is_refused_under_a_budget() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, SCOPES, QUOTAS).await;
    let chat = r#"{"model": "gpt-4o", "messages": [], "max_tokens": 9}"#;
    for (method, path, body) in [
        ("POST", "/up/v1/chat/completions", r#"{"model": "house-model", "messages": []}"#),
        ("POST", "/up/v1/batches", "{}"),
        ("POST", "/up/v1/images/generations", r#"{"model": "gpt-image-1", "prompt": "x"}"#),
        ("POST", "/up/v1/unheard/of", chat),
        ("GET", "/up/v1/realtime", ""),
    ] {
        let request = http().request(method.parse().unwrap(), proxy.url(path)).body(body);
        let refused = request.header("content-type", "application/json").send().await.unwrap();
        let status = refused.status();
        let problem = json(refused).await;
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (400, &"unknown_price".into()),
            "{path}: {problem}"
        );
    }
    assert!(up.is_idle());
}

#[tokio::test]
async fn proxy_counts_by_the_prices_of_its_configuration() {
    let mut up = TestUpstream::start().await;
    let chat = r#"{"model": "house-model", "messages": [], "max_tokens": 1000}"#;
    let price = "prices: {models: {house-model: {input: 0, output: 3}}}";
    let proxy = Proxy::serving(up.addr, SCOPES, &format!("{QUOTAS}\n{price}")).await;
    let request = http().post(proxy.url("/up/v1/chat/completions")).body(chat);
    let sent = tokio::spawn(request.header("content-type", "application/json").send());
    let received = up.request().await;
    assert_eq!(proxy.limiter.stats("account").limits[0].held, 3_000);
    received.answer("200 OK", "", "{}").await;
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn unnamed_request_is_refused_under_a_models_budget() {
    let mut up = TestUpstream::start().await;
    let quotas = "quotas: {gpt-4o: {usd_per_day: 0.1}, \"tenant:bob\": {usd_per_day: 0.1}}";
    let scopes = "scopes: [model, {header: x-tenant, prefix: \"tenant:\"}]";
    let proxy = Proxy::serving(up.addr, scopes, quotas).await;
    let post = |path| http().post(proxy.url(path)).header("x-tenant", "alice").body("{}");
    let refused = post("/up/v1/batches").send().await.unwrap();
    assert_eq!(refused.status(), 400);
    assert_eq!(json(refused).await["code"], "unknown_price");
    proxy.limiter.quotas().remove("gpt-4o");
    let sent = tokio::spawn(post("/up/v1/batches").send());
    up.request().await.answer("200 OK", "", "{}").await;
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn free_request_is_forwarded_when_the_money_is_spent() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, SCOPES, QUOTAS).await;
    let all = Cost::new().custom("usd", 100_000);
    proxy.limiter.try_acquire("account", &all).unwrap().settle(&all);
    for (method, path) in [
        (Method::GET, "/up/v1/models"),
        (Method::GET, "/up/v1/unheard/of"),
        (Method::POST, "/up/v1/files"),
        (Method::POST, "/up/v1/batches/batch_1/cancel"),
        (Method::DELETE, "/up/v1/files/file-1"),
    ] {
        let body = if method == Method::POST { "{}" } else { "" };
        let sent = http().request(method, proxy.url(path)).body(body);
        let sent = tokio::spawn(sent.header("content-type", "application/json").send());
        up.request().await.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().status(), 200, "{path}");
    }
}

#[tokio::test]
async fn refusal_states_the_price_and_the_budget() {
    let up = TestUpstream::start().await;
    let quotas = "quotas: {gpt-4o: {usd_per_day: 0.1}}";
    let proxy = Proxy::with(&[("up", up.addr, "openai")], "mode: reject", quotas).await;
    let all = Cost::new().custom("usd", 99_999);
    proxy.limiter.try_acquire("gpt-4o", &all).unwrap().settle(&all);
    let chat = r#"{"model": "gpt-4o", "messages": [], "max_tokens": 9}"#;
    let request = http().post(proxy.url("/up/v1/chat/completions")).body(chat);
    let refused = request.header("content-type", "application/json").send().await.unwrap();
    assert_eq!(refused.status(), 429);
    let detail = json(refused).await["detail"].to_string();
    assert!(detail.contains("usd of gpt-4o: needs $0.000"), "{detail}");
    assert!(detail.contains(", limit $0.10"), "{detail}");
}

#[tokio::test]
async fn fast_mode_counts_to_the_budget_of_its_model() {
    let mut up = TestUpstream::start().await;
    let upstreams = [("up", up.addr, "anthropic")];
    let quotas = "quotas: {claude-opus-5: {rpm: 5, usd_per_day: 0.15}}";
    let proxy = Proxy::with(&upstreams, "mode: reject", quotas).await;
    let body = r#"{"model": "claude-opus-5", "speed": "fast", "max_tokens": 1000, "messages": []}"#;
    let send = || http().post(proxy.url("/up/v1/messages")).body(body).send();
    let sent = tokio::spawn(send());
    let usage = r#"{"type": "message", "usage": {"input_tokens": 0, "output_tokens": 1000}}"#;
    up.request().await.answer("200 OK", "", usage).await;
    sent.await.unwrap().unwrap().text().await.unwrap();
    // Twice $25 per million tokens; the mode has requests per minute of its own.
    let limits = proxy.limiter.stats("claude-opus-5").limits;
    let used: Vec<_> = limits.iter().map(|limit| limit.used).collect();
    assert_eq!(used, [0, 50_000]);
    let sent = tokio::spawn(send());
    up.request().await.answer("200 OK", "", usage).await;
    sent.await.unwrap().unwrap().text().await.unwrap();
    assert_eq!(send().await.unwrap().status(), 429);
}
