//! Effects of a provider's refusal on later requests.

use std::time::Duration;

use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use paceline::limiter::{Limiter, Reduction};
use paceline::middleware::RateLimitLayer;
use paceline::provider::{ANTHROPIC, GEMINI, OPENAI, Profile};
use paceline::quota::Quota;
use tower::ServiceExt;

use super::inner::Frames;
use super::{S, USAGE, builder, chat, client_returning, cooling, read, send};

fn two_models() -> Limiter {
    let quota = Quota::new().rpm(600);
    builder().provider(OPENAI).quota("gpt-4o", quota.clone()).quota("o1", quota).build().unwrap()
}

fn answer(status: u16, headers: &[(&'static str, &str)], body: &'static str) -> Response<Frames> {
    let mut response = Frames::from(body).into_response();
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    let header =
        |(name, value): &(&'static str, &str)| (name.parse().unwrap(), value.parse().unwrap());
    *response.headers_mut() = headers.iter().map(header).collect::<HeaderMap>();
    response
}

/// Returns the cool-down of the key after the head of such a response, and after its body.
async fn cool_downs(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
) -> (Duration, Duration) {
    let limiter = two_models();
    let layer = RateLimitLayer::new(limiter.clone());
    let mut client = client_returning(&layer, move || answer(status, headers, body));
    let response = send(&mut client, chat("gpt-4o")).await;
    let head = cooling(&limiter, "gpt-4o");
    assert_eq!(read(response).await.unwrap(), body);
    assert_eq!(cooling(&limiter, "o1"), Duration::ZERO);
    (head, cooling(&limiter, "gpt-4o"))
}

/// Returns the cool-down of the key in seconds after the body of such a response was read.
async fn cool_down_seconds(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
) -> u64 {
    cool_downs(status, headers, body).await.1.as_secs()
}

const RETRY: &[(&str, &str)] = &[("retry-after", "7")];

#[tokio::test(start_paused = true)]
async fn refusal_pauses_other_requests_of_key_for_stated_time() {
    for status in [429] {
        let limiter = two_models();
        let layer = RateLimitLayer::new(limiter.clone());
        let mut refused = client_returning(&layer, move || answer(status, RETRY, "{}"));
        drop(send(&mut refused, chat("gpt-4o")).await);
        let client = client_returning(&layer, || answer(200, &[], USAGE));
        let begin = limiter.now();
        client.clone().oneshot(chat("o1")).await.unwrap();
        assert_eq!(limiter.now(), begin);
        let sent: Vec<_> =
            (0..3).map(|_| tokio::spawn(client.clone().oneshot(chat("gpt-4o")))).collect();
        for sent in sent {
            sent.await.unwrap().unwrap();
            assert!((7 * S..9 * S).contains(&(limiter.now() - begin)), "{status}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_pauses_waiting_request() {
    let limiter = builder().quota("gpt-4o", Quota::new().concurrency(1)).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone());
    let mut refused = client_returning(&layer, || answer(429, RETRY, "{}"));
    let response = send(&mut refused, chat("gpt-4o")).await;
    let begin = limiter.now();
    let waiting = client_returning(&layer, || answer(200, &[], USAGE)).oneshot(chat("gpt-4o"));
    let waiting = tokio::spawn(waiting);
    super::settle_down().await;
    drop(response);
    waiting.await.unwrap().unwrap();
    assert!((7 * S..9 * S).contains(&(limiter.now() - begin)));
}

#[tokio::test(start_paused = true)]
async fn refusal_without_delay_pauses_for_one_second() {
    assert_eq!(cool_down_seconds(429, &[], "").await, 1);
}

#[tokio::test(start_paused = true)]
async fn overload_pauses_no_other_request() {
    for status in [503, 529] {
        assert_eq!(cool_down_seconds(status, RETRY, "").await, 0);
        assert_eq!(cool_down_seconds(status, &[], "<html>Service Unavailable</html>").await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_with_delay_in_body_pauses_for_stated_time() {
    let body = r#"{"error": {"message": "Rate limit reached. Please try again in 20s.",
        "type": "tokens", "code": "rate_limit_exceeded"}}"#;
    let (head, read) = cool_downs(429, &[], body).await;
    assert_eq!((head.as_secs(), read.as_secs()), (1, 20));
    // Headers take precedence.
    assert_eq!(cool_down_seconds(429, RETRY, body).await, 7);
}

#[tokio::test(start_paused = true)]
async fn daily_limit_refusal_pauses_for_stated_time() {
    let body = r#"{"error": {"message": "Rate limit reached on requests per day (RPD): Limit 200, Used 200. Please try again in 7m12s.",
        "type": "requests", "code": "rate_limit_exceeded"}}"#;
    assert_eq!(cool_down_seconds(429, &[], body).await, 7 * 60 + 12);
}

const SPENT: &str = r#"{"error": {"message": "You exceeded your current quota. Please try again in 20s.",
    "type": "insufficient_quota", "code": "insufficient_quota"}}"#;

#[tokio::test(start_paused = true)]
async fn account_without_credit_is_not_paused() {
    assert_eq!(cool_down_seconds(429, &[], SPENT).await, 0);
}

#[tokio::test(start_paused = true)]
async fn other_errors_pause_no_key() {
    for status in [400, 401, 404, 408, 500, 502] {
        assert_eq!(
            cool_down_seconds(status, RETRY, "Please try again in 20s.").await,
            0,
            "{status}"
        );
    }
}

const STREAM: &[(&str, &str)] = &[("content-type", "text/event-stream")];

#[tokio::test(start_paused = true)]
async fn refusal_in_stream_pauses_key() {
    let body = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}]}\n\n\
        data: {\"error\": {\"code\": \"rate_limit_exceeded\", \"message\": \"Please try again in 9s.\"}}\n\n";
    let (head, read) = cool_downs(200, STREAM, body).await;
    assert_eq!((head.as_secs(), read.as_secs()), (0, 9));
    let body =
        "data: {\"error\": {\"code\": \"server_is_overloaded\", \"message\": \"Sorry\"}}\n\n";
    assert_eq!(cool_down_seconds(200, STREAM, body).await, 0);
    let body = "data: {\"error\": {\"code\": 429, \"message\": \"Rate limited upstream\"}}\n\n";
    assert_eq!(cool_down_seconds(200, STREAM, body).await, 1);
}

#[tokio::test(start_paused = true)]
async fn other_errors_in_stream_pause_no_key() {
    let failed = "data: {\"error\": {\"type\": \"server_error\", \"message\": \"Sorry\"}}\n\n";
    assert_eq!(cool_down_seconds(200, STREAM, failed).await, 0);
    let spent = "data: {\"error\": {\"code\": \"insufficient_quota\", \"message\": \"Please try again in 9s.\"}}\n\n";
    assert_eq!(cool_down_seconds(200, STREAM, spent).await, 0);
}

/// Returns the limits (requests, tokens, requests per day) of a key after this refusal was read, or
/// dropped unread, and whether the key cools down.
async fn limits_after_refusal(
    profile: Profile,
    answer: fn() -> Response<Frames>,
    is_read: bool,
) -> (Vec<u64>, bool) {
    let quota = Quota::new().rpm(600).tpm(1_000).rpd(9_000);
    let builder = builder().reduction(Reduction::new()).provider(profile);
    let limiter = builder.quota("gpt-4o", quota).build().unwrap();
    let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), answer);
    let response = send(&mut client, chat("gpt-4o")).await;
    match is_read {
        true => drop(read(response).await),
        false => drop(response),
    }
    let limits = limiter.stats("gpt-4o").limits.iter().map(|limit| limit.limit).collect();
    (limits, cooling(&limiter, "gpt-4o") > Duration::ZERO)
}

#[tokio::test(start_paused = true)]
async fn permanent_refusal_neither_pauses_nor_reduces() {
    let spent = || answer(429, RETRY, SPENT);
    let spending_limit = || {
        let body = r#"{"error": {"type": "rate_limit_error", "message":
            "Your organization has reached its monthly spend cap."}}"#;
        answer(429, &[], body)
    };
    let not_again = || answer(503, &[("x-should-retry", "false")], "Sorry");
    for (profile, answer) in [
        (OPENAI, spent as fn() -> _),
        (ANTHROPIC, spending_limit as fn() -> _),
        (OPENAI, not_again as fn() -> _),
    ] {
        assert_eq!(
            limits_after_refusal(profile, answer, true).await,
            (vec![600, 1_000, 9_000], false)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_until_reset_cools_down_without_reduction() {
    let openai = || {
        let body = r#"{"error": {"message": "Rate limit reached on requests per day (RPD): Limit 200",
            "type": "requests", "code": "rate_limit_exceeded"}}"#;
        answer(429, RETRY, body)
    };
    let gemini = || {
        let body = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [
            {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
            {"retryDelay": "33s"}]}}"#;
        answer(429, &[], body)
    };
    for (profile, answer) in [(OPENAI, openai as fn() -> _), (GEMINI, gemini as fn() -> _)] {
        assert_eq!(
            limits_after_refusal(profile, answer, true).await,
            (vec![600, 1_000, 9_000], true)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_reduces_only_the_named_limit() {
    const TOKENS: &str = r#"{"error": {"message": "Rate limit reached on tokens per min (TPM)",
        "type": "tokens", "code": "rate_limit_exceeded"}}"#;
    let with_delay = || answer(429, RETRY, TOKENS);
    let without = || answer(429, &[], TOKENS);
    let in_band = || {
        let event =
            "data: {\"error\": {\"code\": \"rate_limit_exceeded\", \"type\": \"tokens\"}}\n\n";
        answer(200, STREAM, event)
    };
    for answer in [with_delay as fn() -> _, without as fn() -> _, in_band as fn() -> _] {
        assert_eq!(limits_after_refusal(OPENAI, answer, true).await, (vec![600, 500, 9_000], true));
    }
}

/// The head of a success speaks of the request that was accepted. Anthropic states `retry-after` in it too.
#[tokio::test(start_paused = true)]
async fn headers_of_a_success_say_nothing_of_an_error_in_it() {
    const PLAIN: &str = r#"{"error": {"code": "rate_limit_exceeded", "message": "Rate limit"}}"#;
    const UNTIL: &str = r#"{"error": {"code": "rate_limit_exceeded",
        "message": "Your limit will reset at 2026-09-04 19:01:25"}}"#;
    let to_reset = cool_down_seconds(200, &[], UNTIL).await;
    assert!(to_reset > 1);
    for headers in [
        RETRY,
        &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "7")],
        &[("x-codex-primary-used-percent", "100"), ("x-codex-primary-reset-after-seconds", "7200")],
        &[("date", "Fri, 04 Sep 2026 18:01:25 GMT")],
    ] {
        assert_eq!(cool_down_seconds(200, headers, PLAIN).await, 1, "{headers:?}");
        assert_eq!(cool_down_seconds(200, headers, UNTIL).await, to_reset, "{headers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_with_unread_body_is_judged_by_head() {
    let refused = || answer(429, RETRY, SPENT);
    assert_eq!(limits_after_refusal(OPENAI, refused, false).await, (vec![300, 500, 9_000], true));
}

#[tokio::test(start_paused = true)]
async fn refusal_with_compressed_body_is_judged_by_head() {
    let refused = || answer(429, &[("retry-after", "7"), ("content-encoding", "gzip")], SPENT);
    assert_eq!(limits_after_refusal(OPENAI, refused, true).await, (vec![300, 500, 9_000], true));
}

/// The first 16 KiB of the body are enough, since the rest may never arrive.
#[tokio::test(start_paused = true)]
async fn refusal_is_applied_once_enough_of_body_was_read() {
    let limiter = two_models();
    let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), || {
        let mut response =
            Frames::from(SPENT).data(" ".repeat(16 * 1_024)).data("..").into_response();
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        response
    });
    let mut body = send(&mut client, chat("gpt-4o")).await.into_body();
    let held = |limiter: &Limiter| cooling(limiter, "gpt-4o") > Duration::ZERO;
    assert!(held(&limiter));
    body.frame().await.unwrap().unwrap();
    assert!(held(&limiter));
    body.frame().await.unwrap().unwrap();
    assert!(!held(&limiter));
}

#[tokio::test(start_paused = true)]
async fn retracted_pause_wakes_waiters() {
    let limiter = two_models();
    let layer = RateLimitLayer::new(limiter.clone());
    let mut refused = client_returning(&layer, || answer(429, RETRY, SPENT));
    let response = send(&mut refused, chat("gpt-4o")).await;
    let begin = limiter.now();
    let waiting = client_returning(&layer, || answer(200, &[], USAGE)).oneshot(chat("gpt-4o"));
    let waiting = tokio::spawn(waiting);
    super::settle_down().await;
    assert!(!waiting.is_finished());
    read(response).await.unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(limiter.now(), begin);
}
