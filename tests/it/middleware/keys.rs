//! Which key a request is charged to.

use http::Request;
use tollgate::middleware::{Classified, RateLimitLayer};
use tollgate::provider::{COMPATIBLE_USAGE, OPENAI};
use tollgate::quota::{Cost, Quota};
use tower::{Layer, ServiceExt};

use super::inner::Frames;
use super::{USAGE, answering, available, builder, chat, echo, is_ready, limiter, send};

const TWO: &[&str] = &["gpt-4o", "team"];

/// What is left of ten requests each of `gpt-4o` and `team`.
async fn left(layer: impl FnOnce(RateLimitLayer) -> RateLimitLayer, body: &str) -> [u64; 2] {
    let ten = |key: &str| (key.to_owned(), Quota::new().rpm(10));
    let quotas = TWO.iter().map(|key| ten(key));
    let limiter = quotas.fold(builder(), |b, (key, quota)| b.quota(key, quota)).build().unwrap();
    let layer = layer(RateLimitLayer::new(limiter.clone()));
    let mut client = answering(&layer, || Frames::from(USAGE).into_response());
    let request = Request::post("/v1/chat/completions").body(body.to_owned()).unwrap();
    drop(send(&mut client, request).await);
    let left = |key: &str| available(&limiter, key).first().copied().unwrap_or(10);
    [left(TWO[0]), left(TWO[1])]
}

const CHAT: &str = r#"{"model": "gpt-4o", "messages": []}"#;

#[tokio::test(start_paused = true)]
async fn a_request_is_charged_to_its_model() {
    assert_eq!(left(|layer| layer, CHAT).await, [9, 10]);
}

#[tokio::test(start_paused = true)]
async fn the_key_of_the_layer_wins_over_the_model() {
    assert_eq!(left(|layer| layer.key("team"), CHAT).await, [10, 9]);
    assert_eq!(left(|layer| layer.key("team").provider(OPENAI), CHAT).await, [10, 9]);
    assert_eq!(left(|layer| layer.key("team"), "no JSON").await, [10, 9]);
}

#[tokio::test(start_paused = true)]
async fn the_key_of_the_layer_wins_over_that_of_a_closure() {
    let limiter = limiter(Quota::new().rpm(10));
    let layer = RateLimitLayer::new(limiter.clone())
        .classify(|_: &u64| Classified::new("other", Cost::new()))
        .observe(|_: &u64| None)
        .key("k");
    layer.layer(echo()).oneshot(1).await.unwrap();
    assert_eq!(available(&limiter, "k"), [9]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_names_no_model_falls_under_unknown() {
    for body in ["{}", "no JSON", ""] {
        let limiter = builder().quota("unknown", Quota::new().rpm(10)).build().unwrap();
        let layer = RateLimitLayer::new(limiter.clone());
        let mut client = answering(&layer, || Frames::from(USAGE).into_response());
        let request = Request::post("/v1/chat/completions").body(body.to_owned()).unwrap();
        drop(send(&mut client, request).await);
        assert_eq!(available(&limiter, "unknown"), [9], "{body:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_quota_is_not_limited() {
    let limiter = builder().provider(COMPATIBLE_USAGE).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone());
    let mut client = answering(&layer, || Frames::from(USAGE).into_response());
    let begin = limiter.now();
    for _ in 0..1_000 {
        drop(send(&mut client, chat("my-model")).await);
    }
    assert_eq!((limiter.now(), available(&limiter, "my-model")), (begin, vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_is_typical_follows_the_requests_of_the_layer() {
    let limiter = limiter(Quota::new().tpm(1_000));
    let layer = super::tokens(&limiter).key("k");
    layer.layer(echo()).oneshot(100).await.unwrap();
    limiter.acquire("k", &Cost::new().tokens(850)).await.unwrap();
    // 50 are left: less than the 100 that were typical until now.
    assert!(!is_ready(&mut layer.layer(echo())).await);
    let mut small = layer.clone().reject().layer(echo());
    for _ in 0..20 {
        tower::Service::call(small.ready().await.unwrap(), 1).await.unwrap();
    }
    // A layer made by changing another learns for itself; clones learn together.
    assert!(!is_ready(&mut layer.layer(echo())).await);
    assert!(is_ready(&mut super::tokens(&limiter).key("k").layer(echo())).await);
}
