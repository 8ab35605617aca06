//! Requests to a loopback address that come through a reverse proxy, from a page of another site, or
//! with an ambiguous head.

use paceline_serve::Tokens;
use reqwest::RequestBuilder;
use serde_json::Value;

use super::rig::{HttpReply, Rig, http1, http2, raw};

const UPSTREAMS: &str = "upstreams: {up: {base_url: 'http://127.0.0.1:9', provider: openai}, \
                         claude: {base_url: 'http://127.0.0.1:9', provider: anthropic}}";

const FORWARDING: [(&str, &str); 15] = [
    ("forwarded", "for=203.0.113.9"),
    ("x-forwarded-for", "203.0.113.9"),
    ("x-forwarded-host", "rates.example"),
    ("x-forwarded-proto", "https"),
    ("x-real-ip", "203.0.113.9"),
    ("x-client-ip", "203.0.113.9"),
    ("true-client-ip", "203.0.113.9"),
    ("cf-connecting-ip", "203.0.113.9"),
    ("x-envoy-external-address", "203.0.113.9"),
    ("via", "1.1 proxy"),
    ("cf-ray", "1-FRA"),
    ("cdn-loop", "cdn"),
    ("fly-client-ip", "203.0.113.9"),
    ("ali-cdn-real-ip", "203.0.113.9"),
    // A loopback address in the header does not make the request local.
    ("x-forwarded-for", "127.0.0.1"),
];

/// All routes that local requests reach without a token.
const OPEN: [&str; 7] = [
    "/rate/k",
    "/v1/reservations/x",
    "/up/v1/models",
    "/debug",
    "/metrics",
    "/v1/stats",
    "/live/events",
];

async fn rig(serve: &str, client: Option<&str>, admin: Option<&str>) -> Rig {
    let mut tokens = Tokens::default();
    (tokens.client, tokens.admin) = (client.map(str::to_owned), admin.map(str::to_owned));
    Rig::start(&format!("serve: {{listen: '127.0.0.1:0', {serve} {UPSTREAMS}}}"), tokens).await
}

/// Returns only the status, because some responses do not end.
async fn status(rig: &Rig, path: &str, with: impl FnOnce(RequestBuilder) -> RequestBuilder) -> u16 {
    with(http1().get(rig.url(path))).send().await.unwrap().status().as_u16()
}

fn is_refused(status: u16) -> bool {
    [401, 403].contains(&status)
}

#[tokio::test]
async fn forwarded_request_without_tokens_is_refused() {
    // A trusted proxy has no effect without a token.
    for serve in ["", "trusted_proxies: ['127.0.0.1'],"] {
        let rig = rig(serve, None, None).await;
        for path in OPEN {
            assert!(!is_refused(status(&rig, path, |request| request).await), "{path}");
            for (name, value) in FORWARDING {
                let status = status(&rig, path, |request| request.header(name, value)).await;
                assert_eq!(status, 403, "{path} with {name}");
            }
        }
        assert_eq!(status(&rig, "/healthz", |r| r.header("x-forwarded-for", "a")).await, 200);
    }
}

#[tokio::test]
async fn request_forwarded_by_a_trusted_proxy_is_local() {
    let forwarded = |request: RequestBuilder| request.header("x-forwarded-for", "203.0.113.9");
    for (serve, expected) in [
        ("", 403),
        ("trusted_proxies: ['127.0.0.2', '::1'],", 403),
        ("trusted_proxies: ['127.0.0.1'],", 403),
    ] {
        // An admin token alone does not authenticate clients.
        let rig = rig(serve, None, Some("admin")).await;
        assert_eq!(status(&rig, "/rate/k", forwarded).await, expected, "{serve}");
        assert_eq!(status(&rig, "/debug", forwarded).await, 401, "{serve}");
        // The admin token is accepted for clients.
        let with_token = |request| forwarded(request).bearer_auth("admin");
        assert_eq!(status(&rig, "/rate/k", with_token).await, 200, "{serve}");
    }
    for (serve, expected) in [("", 403), ("trusted_proxies: ['127.0.0.1'],", 200)] {
        let rig = rig(serve, Some("client"), None).await;
        assert_eq!(status(&rig, "/rate/k", forwarded).await, 401);
        let with_token = |request| forwarded(request).bearer_auth("client");
        assert_eq!(status(&rig, "/rate/k", with_token).await, 200);
        assert_eq!(status(&rig, "/debug", with_token).await, expected, "{serve}");
    }
}

#[tokio::test]
async fn forwarded_anonymous_clients_cannot_read_keys() {
    let rig = rig("allow_anonymous: true,", None, None).await;
    let forwarded = |request: RequestBuilder| request.header("forwarded", "for=203.0.113.9");
    assert_eq!(status(&rig, "/rate/k", forwarded).await, 200);
    assert_eq!(status(&rig, "/debug", forwarded).await, 403);
}

#[tokio::test]
async fn page_of_another_port_is_foreign() {
    let rig = rig("", None, None).await;
    let port = rig.addr.port();
    for (origin, refused) in [
        (format!("http://127.0.0.1:{port}"), false),
        (format!("http://127.0.0.1:{}", port ^ 1), true),
        ("http://127.0.0.1".to_owned(), true),
        (format!("http://localhost:{port}"), true),
        (format!("https://127.0.0.1:{port}"), true),
        (format!("http://a@127.0.0.1:{port}"), true),
        ("http://evil.example".to_owned(), true),
        ("null".to_owned(), true),
        ("chrome-extension://abc".to_owned(), true),
    ] {
        for path in ["/rate/k", "/up/v1/models", "/debug"] {
            let status = status(&rig, path, |request| request.header("origin", &origin)).await;
            assert_eq!(is_refused(status), refused, "{path} from {origin}: {status}");
        }
    }
    let host = |host: &'static str, origin: &'static str| {
        move |request: RequestBuilder| request.header("host", host).header("origin", origin)
    };
    assert_eq!(status(&rig, "/rate/a", host("localhost", "http://localhost")).await, 200);
    assert_eq!(status(&rig, "/rate/b", host("LOCALHOST:80", "http://localhost")).await, 200);
    assert_eq!(status(&rig, "/rate/c", host("[::1]:9", "http://[::1]:9")).await, 200);
    // Without `Origin` (an image), browsers only send the site, which ignores ports.
    let site = |request: RequestBuilder| request.header("sec-fetch-site", "same-site");
    assert_eq!(status(&rig, "/rate/k", site).await, 403);
    // A user who types the address.
    let typed = |request: RequestBuilder| request.header("sec-fetch-site", "none");
    assert_eq!(status(&rig, "/rate/d", typed).await, 200);
}

#[tokio::test]
async fn head_with_two_hosts_or_userinfo_is_refused() {
    let rig = rig("", Some("token"), None).await;
    let send = async |head: &str| {
        let text = format!("{head}x-paceline-token: token\r\nconnection: close\r\n\r\n");
        raw(rig.addr, text.as_bytes()).await
    };
    for head in [
        "GET /rate/k HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
        "GET /rate/k HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
        "GET /up/v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
        "GET /rate/k HTTP/1.1\r\nHost: localhost:80@evil.example\r\n",
        "GET http://localhost@evil.example/rate/k HTTP/1.1\r\nHost: evil.example\r\n",
        "GET http://user:password@localhost/rate/k HTTP/1.1\r\nHost: localhost\r\n",
    ] {
        let response = send(head).await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{head}{response}");
        assert!(!response.contains("password"), "{response}");
    }
    let one = "GET /rate/k HTTP/1.1\r\nHost: localhost\r\n";
    assert!(send(one).await.starts_with("HTTP/1.1 200 "));
    let absolute = "GET http://localhost/rate/k HTTP/1.1\r\nHost: localhost\r\n";
    assert!(send(absolute).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn http2_authority_with_userinfo_is_refused() {
    let rig = rig("", Some("token"), None).await;
    let send = async |authority: &str, host: Option<&str>| {
        let stream = tokio::net::TcpStream::connect(rig.addr).await.unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let executor = hyper_util::rt::TokioExecutor::new();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(executor, io).await.unwrap();
        tokio::spawn(connection);
        let uri = format!("http://{authority}/rate/k");
        let request = axum::http::Request::get(uri).header("x-paceline-token", "token");
        let request = host.into_iter().fold(request, |request, host| request.header("host", host));
        let request = request.body(String::new()).unwrap();
        sender.send_request(request).await.unwrap().status().as_u16()
    };
    assert_eq!(send("localhost", None).await, 200);
    assert_eq!(send("localhost:80@evil.example", None).await, 400);
    assert_eq!(send("user@localhost", None).await, 400);
    assert_eq!(send("localhost", Some("LOCALHOST")).await, 200);
    assert_eq!(send("localhost", Some("evil.example")).await, 400);
}

#[tokio::test]
async fn idempotency_key_is_scoped_to_token() {
    let rig = rig("", Some("client"), Some("admin")).await;
    let reserve = async |headers: &[(&str, &str)]| {
        let post = http2().post(rig.url("/v1/reserve")).header("idempotency-key", "k");
        let post = headers.iter().fold(post, |post, (name, value)| post.header(*name, *value));
        let post = post.header("content-type", "application/json");
        let reply = HttpReply::of(post.body(r#"{"keys": ["a"]}"#)).await;
        assert_eq!(reply.status, 201, "{headers:?}: {reply:?}");
        reply.json()["id"].as_str().unwrap().to_owned()
    };
    let client = reserve(&[("authorization", "Bearer client")]).await;
    for same in [
        &[("authorization", "bearer  client")][..],
        &[("x-paceline-token", "client")],
        // The server's own header takes precedence.
        &[("x-paceline-token", "client"), ("authorization", "Bearer admin")],
    ] {
        assert_eq!(reserve(same).await, client, "{same:?}");
    }
    let admin = reserve(&[("x-paceline-token", "admin")]).await;
    assert_ne!(admin, client);
    assert_eq!(reserve(&[("authorization", "Bearer admin")]).await, admin);
    let both = [("x-paceline-token", "admin"), ("authorization", "Bearer client")];
    assert_eq!(reserve(&both).await, admin);
}

/// See `/openapi.json` and the documentation of the proxy.
#[tokio::test]
async fn refusal_body_is_as_documented() {
    let rig = rig("", Some("client"), Some("admin")).await;
    let json = "application/json";
    for (path, token, status, code) in [
        ("/rate/k", None, 401, "unauthorized"),
        ("/debug", None, 401, "unauthorized"),
        ("/debug/k", Some("client"), 403, "forbidden"),
        ("/metrics", None, 401, "unauthorized"),
        ("/v1/stats", None, 401, "unauthorized"),
        ("/v1/stats", Some("client"), 403, "forbidden"),
    ] {
        let send = async |accept: &str| {
            let get = http1().get(rig.url(path)).header("accept", accept);
            let get = token.into_iter().fold(get, RequestBuilder::bearer_auth);
            let reply = HttpReply::of(get).await;
            assert_eq!(reply.status, status, "{path}");
            assert_eq!(reply.header("www-authenticate"), if status == 401 { "Bearer" } else { "" });
            assert_eq!(reply.header("cache-control"), "no-store", "{path}");
            reply
        };
        let problem = send(json).await;
        assert_eq!(problem.header("content-type"), "application/problem+json", "{path}");
        assert_eq!(problem.json()["code"], code, "{path}");
        let any = send("*/*").await;
        match path.starts_with("/v1/") {
            true => assert_eq!(any.body, problem.body, "{path}"),
            false => {
                assert_eq!(any.header("content-type"), "text/plain; charset=UTF-8", "{path}");
                assert_eq!(any.body, problem.json()["detail"], "{path}");
            }
        }
    }
    for (path, kind) in [
        ("/up/v1/models", "invalid_request_error"),
        ("/claude/v1/models", "authentication_error"),
        ("/unknown/v1/models", "invalid_request_error"),
    ] {
        let reply = rig.get(path).await;
        assert_eq!((reply.status, reply.header("www-authenticate")), (401, "Bearer"), "{path}");
        assert_eq!(reply.header("x-should-retry"), "false");
        let body: Value = reply.json();
        assert_eq!(body["code"], "unauthorized", "{path}");
        assert_eq!(body["error"]["type"], kind, "{path}");
        assert!(body["error"]["message"].as_str().unwrap().contains("x-paceline-token"), "{body}");
    }
}
