//! Scopes: the keys by which requests are counted.

use axum::extract::MatchedPath;
use http::HeaderName;
use paceline::Key;
use paceline::limiter::Event;
use paceline::quota::Quota;
use tower::{Layer, ServiceExt};

use super::*;

/// Returns the keys that a request is charged to.
async fn keys(
    layer: impl Fn(RespondLayer) -> RespondLayer,
    request: Request<String>,
) -> Vec<String> {
    let limiter = builder().quota("*", Quota::new().rpm(10)).build().unwrap();
    let service = layer(respond(&limiter)).layer(service_returning(hello));
    assert_eq!(service.oneshot(request).await.unwrap().status(), 200);
    limiter.state().snapshot().into_iter().map(|key| key.key).collect()
}

async fn key(scope: &Scope, request: Request<String>) -> String {
    let [key] = keys(|layer| layer.scope(scope.clone()), request).await.try_into().unwrap();
    key
}

#[tokio::test(start_paused = true)]
async fn requests_without_scope_share_one_key() {
    assert_eq!(keys(|layer| layer, get(&[])).await, ["service"]);
    assert_eq!(key(&Scope::fixed("team"), get(&[])).await, "team");
    let limiter = builder().quota("*", Quota::new().rpm(10)).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).key("own").respond();
    layer.layer(service_returning(hello)).oneshot(get(&[])).await.unwrap();
    assert_eq!(limiter.state().snapshot()[0].key, "own");
}

#[tokio::test(start_paused = true)]
async fn api_key_is_stored_as_sha_256_prefix() {
    // echo -n sk-1 | sha256sum
    let hashed = "x-api-key:0f2c10bf3d128c719c6bfa4ecbae94b7";
    assert_eq!(key(&api_key(), get(&[("x-api-key", "sk-1")])).await, hashed);
    assert_eq!(api_key().key_of("sk-1"), hashed);
    let twice = get(&[("x-api-key", "sk-1"), ("x-api-key", "sk-2")]);
    assert_eq!(key(&api_key(), twice).await, hashed);
}

#[tokio::test(start_paused = true)]
async fn plain_header_scope_stores_value_unhashed() {
    let tenant = Scope::header(HeaderName::from_static("x-tenant")).plain();
    assert_eq!(key(&tenant, get(&[("x-tenant", "acme")])).await, "x-tenant:acme");
    let tenant = tenant.named("tenant");
    assert_eq!(key(&tenant, get(&[("x-tenant", "acme")])).await, "tenant:acme");
    // A value that is too long, or invalid UTF-8, is stored as its hash.
    let long = key(&tenant, get(&[("x-tenant", &"a".repeat(129))])).await;
    assert_eq!(long.len(), "tenant:".len() + 32);
    let mut odd = get(&[]);
    odd.headers_mut().insert("x-tenant", http::HeaderValue::from_bytes(b"\xff").unwrap());
    assert_eq!(key(&tenant, odd).await.len(), "tenant:".len() + 32);
}

#[tokio::test(start_paused = true)]
async fn requests_without_value_share_a_key_under_same_quota() {
    for request in [get(&[]), get(&[("x-api-key", "")])] {
        assert_eq!(key(&api_key(), request).await, "x-api-key:");
    }
    assert_eq!(key(&Scope::route(), get(&[])).await, "route:");
    assert_eq!(key(&Scope::peer(), get(&[])).await, "peer:");
    assert_eq!(key(&Scope::extension("user", |user: &User| user.0), get(&[])).await, "user:");
    let limiter = builder().quota("x-api-key:*", Quota::new().rpm(1)).build().unwrap();
    let mut service = respond(&limiter).scope(api_key()).layer(service_returning(hello));
    assert_eq!(ask(&mut service).await.0, 200);
    assert_eq!(ask(&mut service).await.0, 429);
}

#[derive(Clone)]
struct User(&'static str);

#[tokio::test(start_paused = true)]
async fn path_extension_and_closure_scopes_build_keys() {
    let mut request = get(&[]);
    *request.uri_mut() = "/v1/users/42?secret=1".parse().unwrap();
    request.extensions_mut().insert(User("ann"));
    assert_eq!(key(&Scope::path(), request.clone()).await, "path:/v1/users/42");
    let user = Scope::extension("user", |user: &User| user.0);
    assert_eq!(key(&user, request.clone()).await, "user:ann");
    assert_eq!(key(&user.hashed(), request.clone()).await.len(), "user:".len() + 32);
    let method = Scope::by("method", |head| Some(Key::from(head.method.as_str())));
    assert_eq!(key(&method, request).await, "method:GET");
}

#[tokio::test]
async fn route_scope_uses_matched_path_of_router() {
    let limiter = builder().quota("*", Quota::new().rpm(10)).build().unwrap();
    let app = axum::Router::new()
        .route(
            "/users/{id}",
            axum::routing::get(async |path: MatchedPath| path.as_str().to_owned()),
        )
        .layer(respond(&limiter).scope(Scope::route()));
    for path in ["/users/1", "/users/2", "/elsewhere"] {
        let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
        drop(app.clone().oneshot(request).await.unwrap());
    }
    let keys: Vec<_> = limiter.state().snapshot().into_iter().map(|key| key.key).collect();
    assert_eq!(keys, ["route:", "route:/users/{id}"]);
}

#[tokio::test(start_paused = true)]
async fn debug_output_and_refusals_show_no_secret() {
    const SECRET: &str = "s3cr3t";
    let limiter = builder().quota("*", Quota::new().rpm(1)).build().unwrap();
    let mut events = limiter.subscribe();
    let layer = respond(&limiter).scope(api_key());
    let mut service = layer.layer(service_returning(hello));
    let request = || get(&[("x-api-key", SECRET)]);
    let mut shown = format!("{layer:?} {service:?} {:?}", api_key());
    drop(send(&mut service, request()).await);
    let future = service.ready().await.unwrap().call(request());
    shown += &format!("{future:?}");
    let (parts, body) = future.await.unwrap().into_parts();
    shown += &format!("{body:?}");
    let body = body.collect().await.unwrap().to_bytes();
    assert_eq!(parts.status, 429);
    shown += &format!("{parts:?} {}", str::from_utf8(&body).unwrap());
    assert_eq!(problem(&body).get("key"), None);
    let hash = api_key().key_of(SECRET);
    assert!(!format!("{:?} {body:?}", parts.headers).contains(&hash["x-api-key:".len()..]));
    while let Ok(event) = events.try_recv() {
        if let Event::Granted { key, .. } = &event {
            assert_eq!(*key, hash);
        }
        shown += &format!("{event:?}");
    }
    shown += &format!("{:?} {:?}", limiter.state().snapshot(), Head::of(&request()));
    assert!(!shown.contains(SECRET), "{shown}");
}

use paceline::middleware::respond::Head;
