//! Authorization.

use paceline_serve::{ServeError, Server, Tokens};
use reqwest::{Method, RequestBuilder};

use super::rig::{HttpReply, Rig, http1};

const PLAIN: &str = "serve: {listen: '127.0.0.1:0'}";

/// The upstream's port is closed.
const ROUTED: &str = "serve: {listen: '127.0.0.1:0', upstreams: {up: {base_url: 'http://127.0.0.1:9', \
                      provider: openai}}}";

fn tokens(client: Option<&str>, admin: Option<&str>) -> Tokens {
    let mut tokens = Tokens::default();
    (tokens.client, tokens.admin) = (client.map(str::to_owned), admin.map(str::to_owned));
    tokens
}

async fn status(rig: &Rig, path: &str, prepare: impl Fn(RequestBuilder) -> RequestBuilder) -> u16 {
    HttpReply::of(prepare(http1().request(Method::GET, rig.url(path)))).await.status
}

#[tokio::test]
async fn without_tokens_only_local_requests_are_admitted() {
    let rig = Rig::start(PLAIN, tokens(None, None)).await;
    rig.post("/rate/k").await;
    assert_eq!(status(&rig, "/debug/k", |request| request).await, 200);
    for (host, expected) in [
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("[::1]:1", 200),
        ("127.9.9.9", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
    ] {
        let with_host = |request: RequestBuilder| request.header("host", host);
        for path in ["/debug/k", "/rate/k", "/up/v1/models"] {
            let seen = status(&rig, path, with_host).await;
            assert_eq!(seen == 403, expected == 403, "{path} for {host}: {seen}");
        }
    }
    for (site, expected) in [("cross-site", 403), ("same-origin", 200), ("none", 200)] {
        let from_site = |request: RequestBuilder| request.header("sec-fetch-site", site);
        assert_eq!(status(&rig, "/rate/k", from_site).await, expected, "{site}");
    }
}

/// All routes of the server and the tokens that they accept; extend it for a new route.
#[tokio::test]
async fn all_routes_require_matching_token() {
    let rig = Rig::start(ROUTED, tokens(Some(" hunter2\n"), Some("admin"))).await;
    let (anyone, client, admin) = ([true, true, true], [false, true, true], [false, false, true]);
    for (method, path, accepted) in [
        (Method::GET, "/", anyone),
        (Method::GET, "/healthz", anyone),
        (Method::GET, "/readyz", anyone),
        (Method::GET, "/openapi.json", anyone),
        (Method::GET, "/rate/k", client),
        (Method::POST, "/rate/k", client),
        (Method::DELETE, "/rate/k/1", client),
        (Method::POST, "/v1/reserve", client),
        (Method::POST, "/v1/decide", client),
        (Method::GET, "/v1/reservations/x", client),
        (Method::POST, "/v1/reservations/x/settle", client),
        (Method::POST, "/v1/reservations/x/release", client),
        (Method::POST, "/v1/reservations/x/renew", client),
        (Method::GET, "/up", client),
        (Method::GET, "/up/", client),
        (Method::POST, "/up/v1/chat/completions", client),
        (Method::PATCH, "/unknown/path", client),
        (Method::GET, "/debug", admin),
        (Method::GET, "/debug/k", admin),
        (Method::GET, "/metrics", admin),
        (Method::GET, "/live/events", admin),
        (Method::GET, "/v1/stats", admin),
        (Method::GET, "/v1/stats/k", admin),
        (Method::GET, "/v1/quotas", admin),
        (Method::GET, "/v1/quotas/k", admin),
        (Method::PUT, "/v1/quotas/k", admin),
        (Method::DELETE, "/v1/quotas/k", admin),
        (Method::POST, "/v1/reset", admin),
    ] {
        let tokens = [None, Some("hunter2"), Some("admin")];
        for (token, is_accepted) in tokens.into_iter().zip(accepted) {
            let request = http1().request(method.clone(), rig.url(path));
            let request = match token {
                Some(token) => request.header("x-paceline-token", token),
                None => request,
            };
            let status = request.send().await.unwrap().status().as_u16();
            let refused = [401, 403].contains(&status);
            assert_eq!(!refused, is_accepted, "{method} {path} with {token:?}: {status}");
        }
    }
}

#[tokio::test]
async fn empty_token_counts_as_none() {
    let tokens = tokens(Some(" "), None);
    let config = paceline_serve::parse("serve: {listen: '0.0.0.0:0'}").unwrap();
    let limiter = config.builder().build().unwrap();
    let refused = Server::bind(config, limiter, tokens).await.unwrap_err();
    assert!(matches!(refused, ServeError::Unprotected { .. }), "{refused}");
}

#[tokio::test]
async fn requests_without_the_token_are_refused() {
    let rig = Rig::start(PLAIN, tokens(Some("hunter2"), Some("admin"))).await;
    let bearer = |token: &'static str| move |request: RequestBuilder| request.bearer_auth(token);
    for (path, token, expected) in [
        ("/rate/k", None, 401),
        ("/rate/k", Some("hunter"), 401),
        ("/rate/k", Some("hunter22"), 401),
        ("/rate/k", Some("hunter2"), 200),
        ("/rate/k", Some("admin"), 200),
        ("/debug", None, 401),
        ("/debug", Some("hunter2"), 403),
        ("/debug", Some("admin"), 200),
        ("/healthz", None, 200),
        ("/readyz", None, 200),
    ] {
        let status = match token {
            Some(token) => status(&rig, path, bearer(token)).await,
            None => status(&rig, path, |request| request).await,
        };
        assert_eq!(status, expected, "{path} {token:?}");
    }
    let own_header = |request: RequestBuilder| request.header("x-paceline-token", "hunter2");
    assert_eq!(status(&rig, "/rate/k", own_header).await, 200);
    let reply = rig.post("/rate/k").await;
    assert_eq!((reply.status, reply.header("www-authenticate")), (401, "Bearer"));
}

#[tokio::test]
async fn public_address_without_a_token_is_refused() {
    let bind = async |serve: &str, tokens| {
        let config = paceline_serve::parse(&format!("serve: {{{serve}}}")).unwrap();
        let limiter = config.builder().build().unwrap();
        Server::bind(config, limiter, tokens).await
    };
    for address in ["0.0.0.0:0", "[::]:0"] {
        let serve = format!("listen: '{address}'");
        let error = bind(&serve, tokens(None, Some("admin"))).await.unwrap_err();
        assert!(matches!(error, ServeError::Unprotected { .. }), "{error}");
        assert!(error.to_string().contains("PACELINE_TOKEN"), "{error}");
    }
    let server = bind("listen: '0.0.0.0:0'", tokens(Some("t"), None)).await.unwrap();
    // Requests to a public address cannot read keys without the admin token.
    let url = format!("http://127.0.0.1:{}/debug", server.addr().port());
    assert_eq!(HttpReply::of(http1().get(url).bearer_auth("t")).await.status, 403);
    server.shutdown().await.unwrap();
    let open = bind("listen: '0.0.0.0:0', allow_anonymous: true", tokens(None, None)).await;
    open.unwrap().shutdown().await.unwrap();
}

#[test]
fn tokens_are_hidden_in_debug() {
    let debug = format!("{:?}", tokens(Some("hunter2"), Some("swordfish")));
    assert!(!debug.contains("hunter2") && !debug.contains("swordfish"), "{debug}");
}
