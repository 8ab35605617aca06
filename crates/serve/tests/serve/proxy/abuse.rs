//! Attempts to evade limits, and their prevention.

use std::io;

use paceline_testing::log_buffer::LogBuffer;
use reqwest::{Body, RequestBuilder};

use super::rig::{Proxy, TestUpstream, chat, http, json, raw};

/// A chat request of this length in bytes.
fn long(bytes: usize) -> String {
    let text = chat("gpt-4o");
    text.replace("Hi", &"x".repeat(bytes + 2 - text.len()))
}

fn in_chunks(text: &str) -> Body {
    let (first, second) = text.split_at(500);
    let parts = [first, second].map(|part| Ok::<_, io::Error>(part.to_owned()));
    Body::wrap_stream(futures_util::stream::iter(parts))
}

#[tokio::test]
async fn request_bodies_have_a_memory_budget() {
    let mut up = TestUpstream::start().await;
    let bounds = "bounds: {body: 1000, buffered: 3000}";
    let proxy = Proxy::serving(up.addr, bounds, "quotas: {gpt-4o: {concurrency: 1}}").await;
    let post = |body: Body| {
        let post = http().post(proxy.url("/up/v1/chat/completions")).body(body);
        tokio::spawn(post.send())
    };
    let first = post(long(1_000).into());
    let request = up.request().await;
    // Sent bodies are released from the budget; waiting ones are not.
    let second = post(long(1_000).into());
    while proxy.limiter.stats("gpt-4o").waiting < 1 {
        tokio::task::yield_now().await;
    }
    for body in [long(501).into(), in_chunks(&long(501))] {
        let refused = post(body).await.unwrap().unwrap();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
        let problem = json(refused).await;
        assert!(problem["detail"].as_str().unwrap().contains("bounds.buffered"), "{problem}");
    }
    let third = post(long(500).into());
    while proxy.limiter.stats("gpt-4o").waiting < 2 {
        tokio::task::yield_now().await;
    }
    request.answer("200 OK", "", "{}").await;
    assert_eq!(first.await.unwrap().unwrap().text().await.unwrap(), "{}");
    for (sent, bytes) in [(second, 1_000), (third, 500)] {
        let request = up.request().await;
        assert_eq!(request.body, long(bytes).as_bytes());
        request.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().text().await.unwrap(), "{}");
    }
}

#[tokio::test]
async fn connect_and_trace_are_refused_without_logging_targets() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let log = LogBuffer::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::INFO);
    let subscriber = subscriber.with_writer(move || writer.clone()).finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    for method in ["CONNECT", "TRACE"] {
        let fields = "host: localhost\r\nconnection: close\r\n";
        let head = format!("{method} /up/v1/models?key=sk-secret HTTP/1.1\r\n{fields}\r\n");
        let response = raw(proxy.addr(), head).await;
        assert!(response.starts_with("HTTP/1.1 405 "), "{response}");
        assert!(response.contains("allow: GET, ") && response.contains("no_method"), "{response}");
        assert!(!response.contains("sk-secret"), "{response}");
    }
    assert!(up.is_idle());
    let log = log.text();
    assert!(!log.contains("sk-secret") && !log.contains("/v1/models"), "{log}");
}

#[tokio::test]
async fn encoded_path_is_charged_like_decoded_form() {
    let mut up = TestUpstream::start().await;
    let upstreams = [("up", up.addr, "gemini")];
    let paths = [
        "/v1beta/models/gemini-x%3AgenerateContent",
        "/v1beta/mod%65ls/gemini-x:generateContent",
        "/v1beta/models/gemini%2Dx:generat%65Content",
        "/v1beta/models/gemini-x:generateContent",
    ];
    for path in paths {
        let quotas = "quotas: {gemini-x: {rpd: 1}}";
        let proxy = Proxy::with(&upstreams, "mode: reject", quotas).await;
        let post = || http().post(proxy.url(&format!("/up{path}"))).body(r#"{"contents": []}"#);
        let sent = tokio::spawn(post().send());
        let request = up.request().await;
        assert_eq!(request.line(), format!("POST {path} HTTP/1.1"));
        request.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
        assert_eq!(post().send().await.unwrap().status(), 429, "{path}");
    }
}

#[tokio::test]
async fn extra_credential_does_not_change_the_key() {
    let mut up = TestUpstream::start().await;
    let with_made_up_keys = |post: RequestBuilder, n: usize, but: &str| {
        let all = [
            ("authorization", format!("Bearer sk-{n}")),
            ("api-key", format!("sk-{n}")),
            ("x-api-key", format!("sk-{n}")),
            ("x-goog-api-key", format!("sk-{n}")),
        ];
        let others = all.into_iter().filter(|(name, _)| *name != but);
        others.fold(post, |post, (name, value)| post.header(name, value))
    };
    for (provider, name, value, query) in [
        ("openai", "authorization", "Bearer real", "?key="),
        ("anthropic", "x-api-key", "real", "?key="),
        ("gemini", "x-goog-api-key", "real", "?key="),
        ("gemini", "x-goog-api-key", "", "?alt=sse&k%65y=real&n="),
    ] {
        let quotas = "quotas: {'api_key:*': {rpd: 1}}";
        let upstreams = [("up", up.addr, provider)];
        let proxy = Proxy::with(&upstreams, "mode: reject\nscopes: [api_key]", quotas).await;
        for n in 0..3 {
            let post = http()
                .post(proxy.url(&format!("/up/v1/messages{query}{n}")))
                .body(r#"{"model": "m"}"#);
            let real = if value.is_empty() { post } else { post.header(name, value) };
            let sent = tokio::spawn(with_made_up_keys(real, n, name).send());
            if n == 0 {
                up.request().await.answer("200 OK", "", "{}").await;
            }
            let status = sent.await.unwrap().unwrap().status();
            assert_eq!(status, if n == 0 { 200 } else { 429 }, "{provider} {query}");
        }
    }
}

#[tokio::test]
async fn responses_to_browsers_are_sandboxed() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    for (field, is_browser) in [
        (("sec-fetch-dest", "document"), true),
        (("upgrade-insecure-requests", "1"), true),
        (("accept", "text/html"), false),
    ] {
        let get = http().get(proxy.url("/up/v1/models")).header(field.0, field.1);
        let sent = tokio::spawn(get.send());
        let fields = "content-type: text/html\r\ncontent-security-policy: default-src *\r\n";
        up.request().await.answer("200 OK", fields, "<script>1</script>").await;
        let response = sent.await.unwrap().unwrap();
        let headers = response.headers();
        let policies: Vec<_> = headers.get_all("content-security-policy").iter().collect();
        let upstream_policy = "default-src *";
        assert_eq!(
            policies,
            if is_browser { vec![upstream_policy, "sandbox"] } else { vec![upstream_policy] }
        );
        let sniffing = headers.get("x-content-type-options").map(|value| value.as_bytes());
        assert_eq!(sniffing, is_browser.then_some(&b"nosniff"[..]));
        assert_eq!(response.text().await.unwrap(), "<script>1</script>");
    }
}
