//! The parts of a request that are forwarded.

use paceline_serve::Tokens;

use super::rig::{Proxy, TestUpstream, UpstreamExchange, chat, field, http, json, raw};

#[tokio::test]
async fn hop_by_hop_and_own_headers_are_removed() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let body = chat("gpt-4o");
    let fields = "host: evil.example\r\nauthorization: Bearer sk-1\r\nx-two: a\r\nx-two: b\r\n\
        connection: close, X-Named, te\r\nx-named: 1\r\nkeep-alive: timeout=5\r\nte: trailers\r\n\
        upgrade: h2c\r\nproxy-authorization: Basic x\r\nproxy-connection: close\r\n\
        x-paceline-token: secret\r\nX-Paceline-Other: 1\r\nx-forwarded-host: evil.example\r\n\
        accept-encoding: gzip, br\r\nuser-agent: test/1\r\ncontent-type: application/json\r\n";
    let length = body.len();
    let head = "POST /up/v1/chat/completions HTTP/1.1";
    let text = format!("{head}\r\n{fields}content-length: {length}\r\n\r\n{body}");
    let (addr, upstream) = (proxy.addr(), up.addr);
    let client = tokio::spawn(async move { raw(addr, text).await });

    let request = up.request().await;
    assert_eq!(request.line(), "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(request.body, body.as_bytes());
    let mut forwarded: Vec<&str> =
        request.head.lines().skip(1).filter(|line| !line.is_empty()).collect();
    // The server may add a request id.
    forwarded.retain(|line| !line.starts_with("x-request-id"));
    forwarded.sort_unstable();
    let (host, length) = (format!("host: {upstream}"), format!("content-length: {length}"));
    let mut wanted = vec![
        "authorization: Bearer sk-1",
        "x-two: a",
        "x-two: b",
        "x-forwarded-host: evil.example",
        "accept-encoding: identity",
        "user-agent: test/1",
        "content-type: application/json",
        "te: trailers",
        "connection: te",
        &host,
        &length,
    ];
    wanted.sort_unstable();
    assert_eq!(forwarded, wanted);

    let fields = "connection: x-up\r\nx-up: 1\r\nkeep-alive: timeout=9\r\nproxy-authenticate: Basic\r\n\
        set-cookie: a=1\r\nset-cookie: b=2\r\nx-request-id: req_1\r\nx-ratelimit-limit-requests: 9\r\n";
    request.answer("203 Fine", fields, "body").await;
    let response = client.await.unwrap();
    assert!(response.starts_with("HTTP/1.1 203 Fine\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\nbody"), "{response}");
    let cookies: Vec<&str> =
        response.lines().filter(|line| line.starts_with("set-cookie")).collect();
    assert_eq!(cookies, ["set-cookie: a=1", "set-cookie: b=2"]);
    assert_eq!(field(&response, "x-ratelimit-limit-requests"), Some("9"));
    for name in ["x-up", "keep-alive", "proxy-authenticate", "transfer-encoding"] {
        assert_eq!(field(&response, name), None, "{response}");
    }
}

#[tokio::test]
async fn paths_and_queries_are_forwarded_unchanged() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    for target in ["/v1/models/a%2Fb%20c:x?key=1&a=%20+%zz", "/v1//x/", "/?a", ""] {
        let head =
            format!("GET /up{target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let addr = proxy.addr();
        let client = tokio::spawn(async move { raw(addr, head).await });
        let request = up.request().await;
        let wanted = if target.is_empty() { "/" } else { target };
        assert_eq!(request.line(), format!("GET {wanted} HTTP/1.1"));
        request.answer("200 OK", "", "").await;
        assert!(client.await.unwrap().starts_with("HTTP/1.1 200 "));
    }
}

#[tokio::test]
async fn request_cannot_choose_upstream_host() {
    let (mut up, mut evil) = (TestUpstream::start().await, TestUpstream::start().await);
    let proxy = Proxy::to(up.addr, "").await;
    let host = evil.addr;
    let fields = format!("host: {host}\r\nx-forwarded-host: {host}\r\nforwarded: host={host}\r\n");
    for target in [format!("http://{host}/up/v1/models"), format!("/up//{host}/v1")] {
        let head = format!("GET {target} HTTP/1.1\r\n{fields}connection: close\r\n\r\n");
        let addr = proxy.addr();
        let client = tokio::spawn(async move { raw(addr, head).await });
        let request = up.request().await;
        assert_eq!(request.field("host"), Some(&*up.addr.to_string()));
        request.answer("200 OK", "", "").await;
        client.await.unwrap();
    }
    for path in ["/up/../x", "/up/v1/%2e%2e/%2E%2e/x", "/up/..%2fx"] {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let response = raw(proxy.addr(), head).await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{path}: {response}");
        assert!(response.contains("invalid_path"), "{response}");
    }
    assert!(up.is_idle() && evil.is_idle());
}

#[tokio::test]
async fn redirect_is_forwarded_not_followed() {
    let (mut up, mut other) = (TestUpstream::start().await, TestUpstream::start().await);
    let proxy = Proxy::to(up.addr, "").await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    let location = format!("http://{}/v1", other.addr);
    let fields = format!("location: {location}\r\n");
    up.request().await.answer("307 Temporary Redirect", &fields, "").await;
    let response = sent.await.unwrap().expect("a response");
    assert_eq!(response.status(), 307);
    assert_eq!(response.headers()["location"], location);
    assert!(other.is_idle());
}

#[tokio::test]
async fn expect_continue_is_answered_and_not_forwarded() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let mut client = tokio::net::TcpStream::connect(proxy.addr()).await.unwrap();
    let head = "POST /up/v1/files HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n\
        content-length: 2\r\nconnection: close\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    client.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"{}").await.unwrap();
    let request = up.request().await;
    assert_eq!((request.field("expect"), &*request.body), (None, &b"{}"[..]));
    request.answer("200 OK", "", "{}").await;
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
}

#[tokio::test]
async fn websocket_is_refused_and_other_upgrades_ignored() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let head = |protocol: &str| {
        format!(
            "GET /up/v1/realtime HTTP/1.1\r\nhost: localhost\r\nupgrade: {protocol}\r\n\
             connection: upgrade, close\r\n\r\n"
        )
    };
    let response = raw(proxy.addr(), head("WebSocket")).await;
    assert!(
        response.starts_with("HTTP/1.1 426 ")
            && response.contains("no_websocket")
            && response.contains("send the request by HTTP"),
        "{response}"
    );
    assert!(up.is_idle());
    let (addr, text) = (proxy.addr(), head("h2c"));
    let client = tokio::spawn(async move { raw(addr, text).await });
    let request = up.request().await;
    assert_eq!((request.field("upgrade"), request.field("connection")), (None, None));
    request.answer("200 OK", "", "").await;
    assert!(client.await.unwrap().starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn unknown_upstream_error_lists_upstreams() {
    let up = TestUpstream::start().await;
    let two = [("up", up.addr, "openai"), ("claude", up.addr, "anthropic")];
    let proxy = Proxy::with(&two, "", "").await;
    for path in ["/opnai/v1/models", "/opnai", "/UP/v1/models"] {
        let response = http().get(proxy.url(path)).send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let problem = json(response).await;
        assert_eq!(problem["code"], "unknown_upstream");
        let detail =
            "the path names no upstream (available: up, claude); add one to the base URL: `/up/v1`";
        assert_eq!(problem["detail"], detail);
        assert_eq!(problem["error"]["message"], format!("paceline: {detail}"));
    }
}

#[tokio::test]
async fn path_without_an_upstream_is_told_the_base_url() {
    let up = TestUpstream::start().await;
    let two = [("up", up.addr, "openai"), ("claude", up.addr, "anthropic")];
    let proxy = Proxy::with(&two, "", "").await;
    for (path, kind, base) in [
        ("/v1/chat/completions", "invalid_request_error", "`/up/v1`"),
        ("/chat/completions", "invalid_request_error", "`/up/v1`"),
        ("/v1/messages", "not_found_error", "`/claude`"),
    ] {
        let response = http().post(proxy.url(path)).body("{}").send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
        let error = &json(response).await["error"];
        assert_eq!(error["type"], kind, "{path}");
        assert!(error["message"].as_str().unwrap().contains(base), "{error}");
    }
}

#[tokio::test]
async fn oversized_body_is_refused_and_not_forwarded() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, "bounds: {body: 1000}", "").await;
    let post = |body: reqwest::Body| http().post(proxy.url("/up/v1/embeddings")).body(body).send();
    let stated = post(vec![b'x'; 1_001].into()).await.unwrap();
    let parts = (0..3).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 400]));
    let streamed =
        post(reqwest::Body::wrap_stream(futures_util::stream::iter(parts))).await.unwrap();
    for response in [stated, streamed] {
        assert_eq!(response.status(), 413);
        let problem = json(response).await;
        assert_eq!(problem["code"], "body_too_large");
        assert!(problem["error"]["message"].as_str().unwrap().contains("1000 bytes"), "{problem}");
    }
    let fits = tokio::spawn(post(format!(r#"{{"model": "m"{:986}}}"#, "").into()));
    let request = up.request().await;
    assert_eq!(request.body.len(), 1_000);
    request.answer("200 OK", "", "{}").await;
    assert_eq!(fits.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn slow_request_body_times_out() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, "bounds: {body_timeout: 20ms}", "").await;
    let head = "POST /up/v1/embeddings HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\
        connection: close\r\n\r\n{";
    let response = raw(proxy.addr(), head).await;
    assert!(response.starts_with("HTTP/1.1 408 ") && response.contains("slow_body"), "{response}");
    assert!(up.is_idle());
}

#[tokio::test]
async fn oversized_key_is_refused() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, "bounds: {key: 20}", "").await;
    let response = proxy.chat(&"m".repeat(21)).send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(json(response).await["code"], "key_too_long");
    assert!(up.is_idle());
    let fits = tokio::spawn(proxy.chat(&"m".repeat(20)).send());
    up.request().await.answer("200 OK", "", "{}").await;
    assert_eq!(fits.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn chunked_request_is_forwarded_with_content_length() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let body = chat("gpt-4o");
    let (first, second) = body.split_at(10);
    let parts = [first, second].map(|part| Ok::<_, std::io::Error>(part.to_owned()));
    let stream = reqwest::Body::wrap_stream(futures_util::stream::iter(parts));
    let sent = tokio::spawn(http().post(proxy.url("/up/v1/chat/completions")).body(stream).send());
    let request: UpstreamExchange = up.request().await;
    assert_eq!(request.field("content-length"), Some(&*body.len().to_string()));
    assert_eq!((request.field("transfer-encoding"), &*request.body), (None, body.as_bytes()));
    request.answer("200 OK", "", "{}").await;
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn server_token_is_not_forwarded() {
    let mut up = TestUpstream::start().await;
    let url = format!("http://{}", up.addr);
    let text = format!(
        "serve: {{listen: '127.0.0.1:0', upstreams: {{up: {{base_url: '{url}', provider: openai}}}}}}"
    );
    let config = paceline_serve::parse(&text).unwrap();
    let limiter = config.builder().build().unwrap();
    let mut tokens = Tokens::default();
    tokens.client = Some("let-me-in".to_owned());
    let proxy = Proxy::start_with_tokens(config, limiter, tokens).await;
    for chat in [
        proxy.chat("gpt-4o"),
        proxy.chat("gpt-4o").header("authorization", "Bearer let-me-in"),
        proxy.chat("gpt-4o").header("x-paceline-token", "let-me-out"),
    ] {
        assert_eq!(chat.send().await.unwrap().status(), 401);
    }
    assert!(up.is_idle());
    let chat = proxy.chat("gpt-4o").header("authorization", "Bearer sk-1");
    let sent = tokio::spawn(chat.header("x-paceline-token", "let-me-in").send());
    let request = up.request().await;
    assert_eq!(request.field("authorization"), Some("Bearer sk-1"));
    assert!(!request.head.contains("let-me-in"));
    request.answer("200 OK", "", "{}").await;
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn waiting_requests_are_bounded() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, "bounds: {waiting: 1}", "").await;
    let first = tokio::spawn(proxy.chat("gpt-4o").send());
    let request = up.request().await;
    let refused = proxy.chat("gpt-4o").send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    assert_eq!(json(refused).await["code"], "busy");
    request.answer("200 OK", "", "{}").await;
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
}
