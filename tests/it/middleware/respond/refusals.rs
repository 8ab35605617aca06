//! Responses to refused clients.

use std::time::Duration;

use http_body::Body;
use paceline::limiter::{RateLimited, UnknownKey};
use paceline::quota::{Cost, Quota};
use serde_json::json;
use tower::Layer;

use super::*;

const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

#[tokio::test(start_paused = true)]
async fn request_over_limit_is_refused_with_problem_document() {
    let limiter = limiter(Quota::new().rpm(2));
    let mut service = guarded(&limiter, hello);
    for _ in 0..2 {
        assert_eq!(ask(&mut service).await.0, 200);
    }
    let begin = limiter.now();
    let (status, headers, body) = ask(&mut service).await;
    assert_eq!((status, limiter.now()), (429, begin));
    assert_eq!(field(&headers, "content-type"), "application/problem+json");
    assert_eq!(field(&headers, "retry-after"), "30");
    assert_eq!(field(&headers, "ratelimit-policy"), r#""k-rpm";q=2;w=60"#);
    assert_eq!(field(&headers, "ratelimit"), r#""k-rpm";r=0;t=30"#);
    let expected = json!({
        "type": QUOTA_EXCEEDED,
        "title": "Request cannot be satisfied as assigned quota has been exceeded",
        "status": 429,
        "code": "rpm_exceeded",
        "dimension": "requests",
        "key": "k",
        "violated-policies": ["k-rpm"],
        "retry_after": 30,
    });
    assert_eq!(problem(&body), expected);
    // The refusal reserved no quota, so the stated wait is exact.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(ask(&mut service).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_rounded_up_to_whole_seconds() {
    for (passed, expected) in [(0, "30"), (1, "30"), (999, "30"), (1_000, "29"), (29_999, "1")] {
        let limiter = limiter(Quota::new().rpm(2));
        let mut service = guarded(&limiter, hello);
        ask(&mut service).await;
        ask(&mut service).await;
        tokio::time::sleep(Duration::from_millis(passed)).await;
        assert_eq!(field(&ask(&mut service).await.1, "retry-after"), expected, "{passed} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn problem_document_names_every_violated_policy() {
    let quota = Quota::new().rpm(9).tpm(100).tpd(150);
    let limiter = limiter(quota);
    let layer = respond(&limiter).scope("k").cost(|_| Cost::new().tokens(80));
    let mut service = layer.layer(service_returning(hello));
    assert_eq!(ask(&mut service).await.0, 200);
    let (status, _, body) = ask(&mut service).await;
    let body = problem(&body);
    assert_eq!((status, &body["code"]), (429, &json!("tpd_exceeded")));
    assert_eq!(body["violated-policies"], json!(["k-tpm", "k-tpd"]));
}

#[tokio::test(start_paused = true)]
async fn unknown_wait_is_reported_as_one_second() {
    let limiter = limiter(Quota::new().concurrency(1));
    let mut service = guarded(&limiter, hello);
    let first = send(&mut service, get(&[])).await;
    let (status, headers, body) = ask(&mut service).await;
    assert_eq!((status, field(&headers, "retry-after")), (429, "1"));
    assert_eq!(field(&headers, "ratelimit"), r#""k-concurrency";r=0;t=1"#);
    assert_eq!(problem(&body)["code"], "concurrency_exceeded");
    drop(first);
    assert_eq!(ask(&mut service).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn cost_above_limit_has_no_retry_after() {
    let limiter = limiter(Quota::new().tpm(100));
    let layer = respond(&limiter).scope("k").cost(|_| Cost::new().tokens(101));
    let (status, headers, body) = ask(&mut layer.layer(service_returning(hello))).await;
    assert_eq!((status, headers.get("retry-after")), (429, None));
    let body = problem(&body);
    assert_eq!((&body["code"], &body["retry_after"]), (&json!("exceeds_capacity"), &json!(null)));

    let limiter = builder().unknown_key(UnknownKey::Refuse).build().unwrap();
    let (status, headers, body) = ask(&mut guarded(&limiter, hello)).await;
    assert_eq!((status, headers.len()), (429, 1));
    let expected = json!({
        "type": "about:blank",
        "title": "Too Many Requests",
        "status": 429,
        "code": "unknown_model",
        "key": "k",
    });
    assert_eq!(problem(&body), expected);
}

#[tokio::test(start_paused = true)]
async fn unknown_scope_key_is_not_called_a_model() {
    let tenant = || Scope::header(HeaderName::from_static("x-tenant")).named("tenant");
    let limiter = builder().quota("known", Quota::new().rpm(9)).unknown_key(UnknownKey::Refuse);
    let limiter = limiter.build().unwrap();
    for (scope, key) in [(tenant(), json!(null)), (tenant().plain(), json!("tenant:acme"))] {
        let mut service =
            respond(&limiter).scope("known").scope(scope).layer(service_returning(hello));
        let response = send(&mut service, get(&[("x-tenant", "acme")])).await;
        assert_eq!(response.status(), 429);
        let body = problem(&response.into_body().collect().await.unwrap().to_bytes());
        assert_eq!(
            (&body["code"], &body["scope"], &body["key"]),
            (&json!("unknown_key"), &json!("tenant"), &key)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn closed_limiter_responds_with_503() {
    let limiter = limiter(Quota::new().rpm(2));
    let mut service = guarded(&limiter, hello);
    limiter.close().await;
    let (status, headers, body) = ask(&mut service).await;
    assert_eq!((status, headers.get("retry-after")), (503, None));
    let body = problem(&body);
    assert_eq!((&body["code"], &body["title"]), (&json!("closed"), &json!("Service Unavailable")));
}

#[tokio::test(start_paused = true)]
async fn key_above_max_keys_responds_with_503() {
    let quota = Quota::new().rpm(9);
    let limiter = builder().quota("x-api-key:*", quota).max_keys(1).build().unwrap();
    let mut service = respond(&limiter).scope(api_key()).layer(service_returning(hello));
    assert_eq!(send(&mut service, get(&[("x-api-key", "a")])).await.status(), 200);
    let (parts, body) = send(&mut service, get(&[("x-api-key", "b")])).await.into_parts();
    assert_eq!((parts.status.as_u16(), field(&parts.headers, "retry-after")), (503, "1"));
    assert_eq!(problem(&body.collect().await.unwrap().to_bytes())["code"], "too_many_keys");
}

#[tokio::test(start_paused = true)]
async fn cooling_key_is_refused_for_remaining_cool_down() {
    let limiter = limiter(Quota::new().rpm(9));
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(7))));
    let (status, headers, body) = ask(&mut guarded(&limiter, hello)).await;
    assert_eq!((status, field(&headers, "retry-after")), (429, "7"));
    assert_eq!(problem(&body)["code"], "cooling_down");
}

#[tokio::test(start_paused = true)]
async fn request_waits_up_to_max_wait_of_layer() {
    let limiter = limiter(Quota::new().rpm(2));
    let layer = respond(&limiter).scope("k").max_wait(Duration::from_secs(45));
    let mut service = layer.layer(service_returning(hello));
    let begin = limiter.now();
    for seconds in [0, 0, 30, 60] {
        assert_eq!(ask(&mut service).await.0, 200);
        assert_eq!(limiter.now() - begin, Duration::from_secs(seconds));
    }
    // The first waits 30 s. The second would wait 60 s, and is refused immediately.
    let (mut first, mut second) = (service.clone(), service.clone());
    let first = tokio::spawn(async move { ask(&mut first).await.0 });
    settle_down().await;
    let second = tokio::spawn(async move { ask(&mut second).await });
    let (status, headers, body) = second.await.unwrap();
    assert_eq!((status, field(&headers, "retry-after")), (429, "60"));
    assert_eq!(problem(&body)["code"], "others_waiting");
    assert_eq!(first.await.unwrap(), 200);
    // A `max_wait` that is set before `respond` is kept.
    let layer = paceline::RateLimitLayer::new(limiter.clone()).max_wait(Duration::from_secs(45));
    assert_eq!(ask(&mut layer.key("k").respond().layer(service_returning(hello))).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn full_queue_is_refused() {
    let quota = Quota::new().concurrency(1);
    let limiter = builder().quota("k", quota).max_waiting(1).build().unwrap();
    let layer = respond(&limiter).scope("k").max_wait(Duration::from_secs(9));
    let mut service = layer.layer(service_returning(hello));
    let held = send(&mut service, get(&[])).await;
    let mut waiting = service.clone();
    let waiting = tokio::spawn(async move { ask(&mut waiting).await.0 });
    settle_down().await;
    let (status, headers, body) = ask(&mut service).await;
    assert_eq!((status, field(&headers, "retry-after")), (429, "1"));
    let body = problem(&body);
    assert_eq!((&body["code"], &body["key"]), (&json!("queue_full"), &json!("k")));
    drop(held);
    assert_eq!(waiting.await.unwrap(), 200);
}

#[tokio::test(start_paused = true)]
async fn refusal_body_has_exact_size_and_end() {
    let limiter = builder().unknown_key(UnknownKey::Refuse).build().unwrap();
    let mut body = send(&mut guarded(&limiter, hello), get(&[])).await.into_body();
    let length = body.size_hint().exact().unwrap();
    assert!(!body.is_end_stream());
    let frame = http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap().len() as u64, length);
    assert_eq!((body.is_end_stream(), body.size_hint().exact()), (true, Some(0)));
}

#[tokio::test(start_paused = true)]
async fn readiness_waits_for_inner_service_but_not_for_quota() {
    let limiter = limiter(Quota::new().rpm(1));
    let layer = paceline::RateLimitLayer::new(limiter.clone()).key("k").respond();
    let mut service = layer.max_wait(Duration::from_secs(3_600)).layer(service_returning(hello));
    ask(&mut service).await;
    assert!(crate::middleware::is_ready(&mut service).await);
    // It waits for the readiness of the inner service.
    let busy = service_returning(hello).with_readiness(|| std::task::Poll::Pending);
    assert!(!crate::middleware::is_ready(&mut respond(&limiter).layer(busy)).await);
}

#[tokio::test(start_paused = true)]
async fn request_is_refused_by_quota_although_layer_waits() {
    let limiter = limiter(Quota::new().rpm(2).reject());
    let layer = respond(&limiter).scope("k").max_wait(Duration::from_secs(45));
    let mut service = layer.layer(service_returning(hello));
    for _ in 0..2 {
        assert_eq!(ask(&mut service).await.0, 200);
    }
    let begin = limiter.now();
    let (status, headers, _) = ask(&mut service).await;
    assert_eq!((status, limiter.now()), (429, begin));
    assert_eq!(field(&headers, "retry-after"), "30");
}
