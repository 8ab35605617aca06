//! What failed requests are charged, through the layer.

use http::{Request, Response, StatusCode};
use paceline::limiter::Limiter;
use paceline::middleware::RateLimitLayer;
use paceline::provider::{ANTHROPIC, COMPATIBLE_USAGE, OPENAI, Profile};
use paceline::quota::{Algorithm, Quota};

use super::inner::Frames;
use super::{available, builder, client_returning, held, read, send, settle_down};

fn failed(status: u16, body: &'static str) -> impl Fn() -> Response<Frames> + Send + Sync {
    move || {
        let mut response = Frames::from(body).into_response();
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        response
    }
}

/// Returns a request with a text of this many bytes.
fn request(bytes: usize) -> Request<String> {
    let text = "x".repeat(bytes);
    let messages = serde_json::json!([{"role": "user", "content": text}]);
    let body = serde_json::json!({"model": "m", "max_tokens": 50, "messages": messages});
    Request::post("/v1/chat/completions").body(body.to_string()).unwrap()
}

fn limiter(profile: Profile) -> Limiter {
    let quota = Quota::new().rpm(10).tpm(1_000).with_algorithm(Algorithm::TokenBucket);
    builder().provider(profile).quota("m", quota).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn request_refused_before_processing_costs_no_tokens() {
    for profile in [OPENAI, COMPATIBLE_USAGE, ANTHROPIC] {
        for status in [400, 401, 403, 404, 413, 422] {
            let limiter = limiter(profile);
            let layer = RateLimitLayer::new(limiter.clone()).provider(profile);
            let mut client = client_returning(&layer, failed(status, "{}"));
            let response = send(&mut client, request(400)).await;
            assert!(available(&limiter, "m")[1] < 1_000 - 100);
            read(response).await.unwrap();
            assert_eq!(available(&limiter, "m"), [9, 1_000], "{profile:?} {status}");
            assert_eq!(held(&limiter, "m"), [0, 0]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failure_after_processing_may_have_begun_keeps_tokens() {
    for status in [408, 499, 500, 502, 504, 429, 503, 529] {
        let limiter = limiter(OPENAI);
        let layer = RateLimitLayer::new(limiter.clone());
        let mut client = client_returning(&layer, failed(status, "{}"));
        read(send(&mut client, request(400)).await).await.unwrap();
        let left = limiter.stats("m").limits[1].used;
        assert_eq!(left, 100 + 1 + 1 + 50, "{status}");
    }
}

/// The body shows what was refused.
#[tokio::test(start_paused = true)]
async fn refusal_costs_tokens_only_where_the_provider_counts_them() {
    for (profile, status, body, costs_tokens) in [
        (OPENAI, 429, r#"{"error": {"code": "rate_limit_exceeded"}}"#, true),
        (OPENAI, 429, r#"{"error": {"code": "insufficient_quota"}}"#, false),
        (OPENAI, 429, r#"{"error": {"code": "request_too_large"}}"#, false),
        (ANTHROPIC, 429, r#"{"error": {"type": "rate_limit_error"}}"#, false),
        (ANTHROPIC, 529, r#"{"error": {"type": "overloaded_error"}}"#, false),
        (COMPATIBLE_USAGE, 429, "{}", false),
        (COMPATIBLE_USAGE, 503, "<html>", false),
    ] {
        let limiter = limiter(profile);
        let layer = RateLimitLayer::new(limiter.clone()).provider(profile);
        let mut client = client_returning(&layer, failed(status, body));
        read(send(&mut client, request(400)).await).await.unwrap();
        let stats = limiter.stats("m");
        let used = [stats.limits[0].used, stats.limits[1].used];
        let tokens = if costs_tokens { 100 + 1 + 1 + 50 } else { 0 };
        assert_eq!(used, [1, tokens], "{profile:?} {status} {body}");
    }
}

/// A request of nearly the whole limit is refused with 413.
#[tokio::test(start_paused = true)]
async fn refused_request_does_not_delay_the_next() {
    let limiter = limiter(OPENAI);
    let layer = RateLimitLayer::new(limiter.clone());
    let mut client = client_returning(&layer, failed(413, "{}"));
    let response = send(&mut client, request(3_600)).await;
    let mut other = client_returning(&layer, failed(200, super::USAGE));
    let next = tokio::spawn(async move { send(&mut other, request(3_600)).await });
    settle_down().await;
    assert!(!next.is_finished());
    read(response).await.unwrap();
    settle_down().await;
    assert!(next.is_finished());
}

#[tokio::test(start_paused = true)]
async fn unread_body_of_a_refused_request_costs_no_tokens() {
    let limiter = limiter(OPENAI);
    let layer = RateLimitLayer::new(limiter.clone());
    let mut client = client_returning(&layer, failed(413, "{}"));
    drop(send(&mut client, request(400)).await);
    assert_eq!(available(&limiter, "m"), [9, 1_000]);
}

#[tokio::test(start_paused = true)]
async fn error_after_generation_keeps_tokens() {
    const FILTERED: &str = r#"{"error": {"code": "content_filter", "message": "No"}}"#;
    for (profile, expected) in [(OPENAI, 1_000 - 152), (COMPATIBLE_USAGE, 792)] {
        let limiter = limiter(profile);
        let layer = RateLimitLayer::new(limiter.clone()).provider(profile);
        let mut client = client_returning(&layer, failed(400, FILTERED));
        read(send(&mut client, request(400)).await).await.unwrap();
        assert_eq!(available(&limiter, "m")[1], expected, "{profile:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn error_as_first_event_has_the_charge_of_its_status() {
    const INVALID: &str = "event: error\ndata: {\"type\": \"error\", \
        \"error\": {\"type\": \"invalid_request_error\", \"message\": \"No\"}}\n\n";
    const CHUNK: &str = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}]}\n\n";
    for (before, expected) in [("", 1_000), (": keep-alive\n\n", 1_000), (CHUNK, 1_000 - 152)] {
        let limiter = limiter(OPENAI);
        let layer = RateLimitLayer::new(limiter.clone());
        let mut client = client_returning(&layer, move || {
            Frames::default().data([before, INVALID].concat()).into_response()
        });
        read(send(&mut client, request(400)).await).await.unwrap();
        assert_eq!(available(&limiter, "m")[1], expected, "after {before:?}");
    }
}
