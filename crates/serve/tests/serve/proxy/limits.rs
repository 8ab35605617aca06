//! Limits of proxied requests: against an enforcing provider, several keys, waits and refusals.

use std::net::SocketAddr;

use futures_util::future::join_all;
use paceline::quota::Dimension;
use paceline_simulate::Settings;

use super::rig::{Proxy, TestUpstream, chat, field, http, json};

async fn provider(settings: Settings) -> paceline_simulate::SimulatedServer {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    paceline_simulate::SimulatedServer::bind(settings, any).await.expect("a free port")
}

#[tokio::test]
async fn enforcing_provider_refuses_no_request_under_load() {
    let settings = Settings::default().with_rpm(600).with_tpm(60_000);
    let server = provider(settings).await;
    let proxy = Proxy::to(server.addr(), PROVIDER_LIMITS).await;
    // 588 immediately, and the rest as the limit refills.
    let client = http();
    let send = |_| {
        let post = client.post(proxy.url("/up/v1/chat/completions")).body(chat("gpt-4o"));
        async move { post.send().await.unwrap().status().as_u16() }
    };
    let statuses = join_all((0..605).map(send)).await;
    assert!(statuses.iter().all(|&status| status == 200), "{statuses:?}");
    let counted = server.stats().total;
    assert_eq!((counted.received, counted.admitted, counted.refused), (605, 605, 0));
}

#[tokio::test]
async fn request_is_charged_to_all_keys_or_none() {
    let mut up = TestUpstream::start().await;
    let scopes = "mode: reject\nscopes: [{header: x-tenant, prefix: 'tenant:', default: nobody}, model, {key: account}]";
    let quotas = "quotas: {gpt-4o: {rpd: 10}, 'tenant:*': {rpd: 1}, account: {rpd: 10}}";
    let proxy = Proxy::serving(up.addr, scopes, quotas).await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").header("x-tenant", "a").send());
    up.request().await.answer("200 OK", "", "{}").await;
    sent.await.unwrap().unwrap().text().await.unwrap();
    let used = || ["gpt-4o", "tenant:a", "account"].map(|key| proxy.used(key));
    assert_eq!(used(), [1, 1, 1]);
    let refused = proxy.chat("gpt-4o").header("x-tenant", "a").send().await.unwrap();
    assert_eq!((refused.status().as_u16(), used()), (429, [1, 1, 1]));
    let problem = json(refused).await;
    assert_eq!(problem["violated-policies"], serde_json::json!(["tenant-rpd"]));
    assert!(up.is_idle());
    // Each tenant has its own key; requests without the header share one.
    for tenant in [Some("b"), None] {
        let chat = tenant.into_iter().fold(proxy.chat("gpt-4o"), |c, t| c.header("x-tenant", t));
        let sent = tokio::spawn(chat.send());
        up.request().await.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(proxy.chat("gpt-4o").send().await.unwrap().status(), 429);
}

#[tokio::test]
async fn api_key_is_found_everywhere_and_hashed() {
    let mut up = TestUpstream::start().await;
    let quotas = "quotas: {'api_key:*': {rpd: 1}}";
    let proxy = Proxy::serving(up.addr, "mode: reject\nscopes: [api_key]", quotas).await;
    // sha256("sk-secret") = 5ff89d...
    let credentials: [(&str, &str, &str); 5] = [
        ("authorization", "bearer sk-secret", ""),
        ("x-api-key", "sk-secret", ""),
        ("api-key", "sk-secret", ""),
        ("x-goog-api-key", "sk-secret", ""),
        ("x-none", "", "?alt=sse&key=sk%2Dsecret"),
    ];
    for (n, (name, value, query)) in credentials.into_iter().enumerate() {
        let post =
            http().post(proxy.url(&format!("/up/v1/embeddings{query}"))).body(r#"{"model": "m"}"#);
        let sent = tokio::spawn(post.header(name, value).send());
        if n == 0 {
            up.request().await.answer("200 OK", "", "{}").await;
        }
        let status = sent.await.unwrap().unwrap().status().as_u16();
        assert_eq!(status, if n == 0 { 200 } else { 429 }, "{name}");
    }
    let keys = proxy.limiter.state().keys();
    let [key] = &keys[..] else { panic!("{keys:?}") };
    let hash = key.strip_prefix("api_key:").expect("a key of the scope");
    assert!(hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{key}");
    assert!(!format!("{:?}", proxy.server).contains("sk-secret"));
}

#[tokio::test]
async fn reject_mode_refuses_with_retry_after() {
    let mut up = TestUpstream::start().await;
    let quotas = "quotas: {gpt-4o: {rpd: 1}}\nproviders: [openai]";
    for (name, serve, more) in [
        ("mode", "mode: reject", quotas),
        ("wait", "", "quotas: {gpt-4o: {rpd: 1}}\nwaiting: {max_wait: 1s}"),
        ("wait", "", "quotas: {gpt-4o: {rpd: 1}}"),
        ("wait", "", "quotas: {gpt-4o: {rpd: 1, mode: reject}}\nwaiting: {max_wait: unlimited}"),
    ] {
        let proxy = Proxy::serving(up.addr, serve, more).await;
        let sent = tokio::spawn(proxy.chat("gpt-4o").send());
        up.request().await.answer("200 OK", "", "{}").await;
        sent.await.unwrap().unwrap().text().await.unwrap();
        let refused = proxy.chat("gpt-4o").send().await.unwrap();
        assert_eq!(refused.status(), 429, "{name}");
        let headers = refused.headers().clone();
        let seconds: u64 = headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(seconds > 80_000, "{headers:?}");
        assert_eq!(headers["ratelimit-policy"], "\"gpt-4o-rpd\";q=1;w=86400");
        assert_eq!(headers["ratelimit"], format!("\"gpt-4o-rpd\";r=0;t={seconds}"));
        assert_eq!(headers["content-type"], "application/problem+json");
        let body = json(refused).await;
        assert_eq!((&body["status"], &body["dimension"]), (&429.into(), &"requests".into()));
        let error = &body["error"];
        assert_eq!(
            (&error["code"], &error["type"]),
            (&"rate_limit_exceeded".into(), &"requests".into())
        );
        let message = error["message"].as_str().unwrap();
        let stated = "requests per day of gpt-4o: needs 1, 0 left of 1";
        assert!(message.contains(stated), "{message}");
        assert!(message.contains(&format!("Please try again in {seconds}s")), "{message}");
        assert!(up.is_idle());
    }
}

#[tokio::test]
async fn impossible_request_and_full_queue_are_refused() {
    let mut up = TestUpstream::start().await;
    let quotas = "quotas: {small: {tpm: 10}, gpt-4o: {concurrency: 1}}\nwaiting: {max_waiting: 1}";
    let proxy = Proxy::to(up.addr, quotas).await;
    let huge = chat("small").replace("Hi", &"word ".repeat(100));
    let post = http().post(proxy.url("/up/v1/chat/completions")).body(huge);
    let refused = post.send().await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers().get("retry-after")), (400, None));
    assert_eq!(refused.headers()["x-should-retry"], "false");
    let body = json(refused).await;
    assert_eq!((&body["code"], &body["status"]), (&"exceeds_capacity".into(), &400.into()));
    assert_eq!(body["error"]["type"], "invalid_request_error");

    let first = tokio::spawn(proxy.chat("gpt-4o").send());
    let request = up.request().await;
    let second = tokio::spawn(proxy.chat("gpt-4o").send());
    while proxy.limiter.stats("gpt-4o").waiting < 1 {
        tokio::task::yield_now().await;
    }
    let refused = proxy.chat("gpt-4o").send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    let body = json(refused).await;
    assert_eq!(body["code"], "queue_full");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("gpt-4o: the wait queue is full with 1 requests"), "{message}");
    request.answer("200 OK", "", "{}").await;
    first.await.unwrap().unwrap().text().await.unwrap();
    up.request().await.answer("200 OK", "", "{}").await;
    assert_eq!(second.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn upstream_429_is_retried_as_configured() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "retry: {attempts: 3}").await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let request = up.request().await;
        assert_eq!(request.body, chat("gpt-4o").as_bytes());
        request.answer(status, "retry-after-ms: 1\r\n", r#"{"error": {"message": "m"}}"#).await;
    }
    up.request().await.answer("200 OK", "", "fine").await;
    assert_eq!(sent.await.unwrap().unwrap().text().await.unwrap(), "fine");

    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    for n in 0..3 {
        let body = format!("the {n}th");
        up.request().await.answer("503 Service Unavailable", "retry-after-ms: 1\r\n", &body).await;
    }
    let response = sent.await.unwrap().unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.text().await.unwrap(), "the 2th");
}

#[tokio::test]
async fn upstream_401_is_forwarded_without_retry() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "retry: {attempts: 3}").await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    let body = r#"{"error": {"message": "no", "code": "invalid_api_key"}}"#;
    up.request().await.answer("401 Unauthorized", "", body).await;
    let response = sent.await.unwrap().unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(response.text().await.unwrap(), body);
    assert!(up.is_idle());
}

#[tokio::test]
async fn model_lists_are_not_charged() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, "mode: reject", "unknown_key: refuse").await;
    assert_eq!(proxy.chat("unknown").send().await.unwrap().status(), 400);
    let sent = tokio::spawn(http().get(proxy.url("/up/v1/models")).send());
    up.request().await.answer("200 OK", "", "[]").await;
    assert_eq!(sent.await.unwrap().unwrap().text().await.unwrap(), "[]");
}

#[tokio::test]
async fn unknown_tenant_is_not_called_a_model() {
    let up = TestUpstream::start().await;
    let scopes = "mode: reject\nscopes: [model, {header: x-tenant, prefix: 'tenant:'}]";
    let quotas = "quotas: {gpt-4o: {rpd: 9}, 'tenant:a': {rpd: 9}}\nunknown_key: refuse";
    let proxy = Proxy::serving(up.addr, scopes, quotas).await;
    for (model, tenant, code, message) in [
        ("gpt-4o", "b", "unknown_key", "no quota covers this tenant. Retrying will not help."),
        ("other", "a", "unknown_model", "other: unknown key. Retrying will not help."),
    ] {
        let refused = proxy.chat(model).header("x-tenant", tenant).send().await.unwrap();
        assert_eq!(refused.status(), 400);
        let problem = json(refused).await;
        assert_eq!(problem["code"], code);
        let text = problem["error"]["message"].as_str().unwrap();
        assert!(text.contains(message), "{text}");
        assert!(!text.contains("tenant:b"), "{text}");
    }
}

#[tokio::test]
async fn refusal_of_a_tenant_states_its_limit_without_its_name() {
    let mut up = TestUpstream::start().await;
    let scopes = "mode: reject\nscopes: [model, {header: x-tenant, prefix: 'tenant:'}]";
    let proxy = Proxy::serving(up.addr, scopes, "quotas: {'tenant:*': {rpd: 1}}").await;
    let send = || tokio::spawn(proxy.chat("gpt-4o").header("x-tenant", "secret").send());
    let sent = send();
    up.request().await.answer("200 OK", "", "{}").await;
    sent.await.unwrap().unwrap().text().await.unwrap();
    let refused = send().await.unwrap().unwrap();
    assert_eq!(refused.status(), 429);
    let problem = json(refused).await;
    assert_eq!(problem["scope"], "tenant");
    let text = problem["error"]["message"].as_str().unwrap();
    assert!(text.contains("requests per day of this tenant: needs 1, 0 left of 1"), "{text}");
    assert!(!problem.to_string().contains("secret"), "{problem}");
}

/// Sends a chat of each client while the only slot is taken, and returns the order of arrival upstream.
async fn order_of_waiters<const N: usize>(
    serve: &str,
    waiting: &str,
    clients: [(&str, Option<&str>); N],
) -> Vec<String> {
    let mut up = TestUpstream::start().await;
    let scopes = "scopes: [model, api_key, {header: x-tenant, prefix: 'tenant:', default: first}]";
    let scopes = format!("{scopes}\n{serve}");
    let more = format!("quotas: {{gpt-4o: {{concurrency: 1, rpm: 600}}}}\nwaiting: {waiting}");
    let proxy = Proxy::serving(up.addr, &scopes, &more).await;
    let first = tokio::spawn(proxy.chat("gpt-4o").send());
    let open = up.request().await;
    let mut sent = Vec::new();
    for (at, (tenant, priority)) in clients.into_iter().enumerate() {
        let chat = proxy.chat("gpt-4o").header("x-tenant", tenant).bearer_auth(tenant);
        let chat = chat.header("x-n", at);
        let chat = priority.into_iter().fold(chat, |chat, name| chat.header("x-priority", name));
        sent.push(tokio::spawn(chat.send()));
        while proxy.limiter.stats("gpt-4o").waiting != at + 1 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
    open.answer("200 OK", "", "{}").await;
    first.await.unwrap().unwrap().text().await.unwrap();
    let mut order = Vec::new();
    for _ in 0..N {
        let request = up.request().await;
        assert_eq!(field(&request.head, "x-priority"), None, "{}", request.head);
        order.push(field(&request.head, "x-n").unwrap().to_owned());
        request.answer("200 OK", "", "{}").await;
    }
    for sent in sent {
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    }
    order
}

#[tokio::test]
async fn tenants_get_turns_by_band_and_fair_share() {
    let night_and_day = [("night", None), ("other", None), ("chat", None)];
    assert_eq!(order_of_waiters("", "{}", night_and_day).await, ["0", "1", "2"]);
    let bands = "{bands: {'tenant:night': batch, 'tenant:chat': interactive}}";
    assert_eq!(order_of_waiters("", bands, night_and_day).await, ["2", "1", "0"]);
    let greedy = [("a", None), ("a", None), ("a", None), ("b", None)];
    for kind in ["tenant", "api_key"] {
        let waiting = format!("{{fair_by: {kind}}}");
        assert_eq!(order_of_waiters("", &waiting, greedy).await, ["0", "3", "1", "2"], "{kind}");
    }
}

#[tokio::test]
async fn priority_header_is_read_where_configured_and_removed() {
    let clients = [("a", Some("batch")), ("b", None), ("c", Some("7"))];
    let header = "priority_header: x-priority";
    assert_eq!(order_of_waiters(header, "{}", clients).await, ["2", "1", "0"]);
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, header, "").await;
    for value in ["urgent", "128", ""] {
        let refused = proxy.chat("gpt-4o").header("x-priority", value).send().await.unwrap();
        assert_eq!(refused.status(), 400, "{value:?}");
        assert_eq!(json(refused).await["code"], "invalid_priority");
    }
    let two = proxy.chat("gpt-4o").header("x-priority", "1").header("x-priority", "2");
    assert_eq!(two.send().await.unwrap().status(), 400);
    assert!(up.is_idle());
}

#[tokio::test]
async fn stream_settles_with_reported_usage() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::with(
        &[("up", up.addr, "anthropic")],
        "",
        "quotas: {claude-x: {limits: [{dimension: output_tokens, limit: 10000, window: 1d}]}}",
    )
    .await;
    let body = r#"{"model": "claude-x", "max_tokens": 4000, "stream": true, "messages": []}"#;
    let sent = tokio::spawn(http().post(proxy.url("/up/v1/messages")).body(body).send());
    let mut request = up.request().await;
    request.begin_chunks().await;
    let start =
        r#"{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#;
    let delta = r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":77}}"#;
    for (name, data) in [
        ("message_start", start),
        ("message_delta", delta),
        ("message_stop", r#"{"type":"message_stop"}"#),
    ] {
        request.chunk(&format!("event: {name}\ndata: {data}\n\n")).await;
    }
    request.write("0\r\n\r\n").await;
    let text = sent.await.unwrap().unwrap().text().await.unwrap();
    assert!(text.contains("message_stop"));
    let limits = proxy.limiter.stats("claude-x").limits;
    assert_eq!((&limits[0].dimension, limits[0].used), (&Dimension::OutputTokens, 77));
}

const PROVIDER_LIMITS: &str = "providers: [openai]\nquotas: {gpt-4o: {rpm: 600, tpm: 60000}}";

#[tokio::test]
async fn waiting_request_at_shutdown_gets_retry_after() {
    for provider in ["openai", "gemini"] {
        let mut up = TestUpstream::start().await;
        let upstreams = [("up", up.addr, provider)];
        let proxy = Proxy::with(&upstreams, "", "quotas: {gpt-4o: {concurrency: 1}}").await;
        let _first = tokio::spawn(proxy.chat("gpt-4o").send());
        let _held = up.request().await;
        let second = tokio::spawn(proxy.chat("gpt-4o").send());
        while proxy.limiter.stats("gpt-4o").waiting < 1 {
            tokio::task::yield_now().await;
        }
        proxy.limiter.close().await;
        let refused = second.await.unwrap().unwrap();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
        let body = json(refused).await;
        assert_eq!(body["retry_after"], 1);
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("Please try again in 1s."), "{message}");
        if provider == "gemini" {
            assert_eq!(body["error"]["details"][0]["retryDelay"], "1s");
        }
    }
}

#[tokio::test]
async fn names_of_a_model_of_ollama_share_its_quota() {
    let mut up = TestUpstream::start().await;
    let quotas = "quotas: {'Library/Llama3.2': {rpd: 3}, '*': {rpd: 9}}";
    let proxy = Proxy::with(&[("up", up.addr, "ollama")], "mode: reject", quotas).await;
    for model in ["llama3.2", "LLAMA3.2:latest", "library/llama3.2"] {
        let sent = tokio::spawn(proxy.post("/up/api/chat", chat(model)).send());
        let request = up.request().await;
        assert_eq!(request.body, chat(model).as_bytes());
        request.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    }
    let refused = proxy.post("/up/api/chat", chat("Llama3.2")).send().await.unwrap();
    assert_eq!(refused.headers()["ratelimit-policy"], "\"Library/Llama3.2-rpd\";q=3;w=86400");
    assert_eq!(json(refused).await["key"], "Library/Llama3.2");
}
