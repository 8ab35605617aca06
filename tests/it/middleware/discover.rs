//! Limits learned from headers.

use http::Response;
use paceline::limiter::{Limiter, UnknownKey};
use paceline::middleware::RateLimitLayer;
use paceline::provider::{ANTHROPIC, OPENAI};
use paceline::quota::Quota;

use super::inner::Frames;
use super::{USAGE, available, builder, chat, client_returning, send};

fn limited() -> Response<Frames> {
    let mut response = Frames::from(USAGE).into_response();
    for (name, value) in [
        ("x-ratelimit-limit-requests", "500"),
        ("x-ratelimit-remaining-requests", "480"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-remaining-tokens", "28000"),
    ] {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

async fn send_one(limiter: &Limiter, model: &str) -> Vec<u64> {
    let layer = RateLimitLayer::new(limiter.clone());
    drop(send(&mut client_returning(&layer, limited), chat(model)).await);
    available(limiter, model)
}

async fn send_one_without_headers(limiter: &Limiter, model: &str) -> Vec<u64> {
    let layer = RateLimitLayer::new(limiter.clone());
    let silent = || Frames::from(USAGE).into_response();
    drop(send(&mut client_returning(&layer, silent), chat(model)).await);
    available(limiter, model)
}

#[tokio::test(start_paused = true)]
async fn limits_and_usage_are_learned() {
    let limiter = builder().provider(OPENAI).build().unwrap();
    assert_eq!(send_one(&limiter, "my-model").await, [480, 28_000]);
    // The next request is charged to the learned limits.
    assert_eq!(send_one(&limiter, "my-model").await, [479, 28_000 - 57]);
    assert_eq!(send_one(&limiter, "other-model").await, [480, 28_000]);
}

/// A request without a bound reserves 1,024 output tokens at first, and later the expected output
/// of its key.
#[tokio::test(start_paused = true)]
async fn learned_limit_below_default_output_refuses_no_request() {
    let limiter = builder().provider(ANTHROPIC).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone());
    let answer = || {
        let usage = r#"{"type": "message", "usage": {"input_tokens": 12, "output_tokens": 950}}"#;
        let mut response = Frames::from(usage).into_response();
        for kind in ["input", "output"] {
            let name = format!("anthropic-ratelimit-{kind}-tokens-limit");
            let name = http::HeaderName::try_from(name).unwrap();
            response.headers_mut().insert(name, 900.into());
        }
        response
    };
    let mut client = client_returning(&layer, answer);
    for _ in 0..10 {
        let body = r#"{"model": "my-model", "messages": []}"#.to_owned();
        let response = send(&mut client, http::Request::post("/v1/messages").body(body).unwrap());
        super::read(response.await).await.unwrap();
    }
    assert_eq!(limiter.quotas().of("my-model").limits()[1].amount(), 900);
    assert_eq!(limiter.feedback().expected_output("my-model"), Some(950));
}

#[tokio::test(start_paused = true)]
async fn errors_teach_no_limits() {
    let limiter = builder().provider(OPENAI).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone());
    let not_found = || {
        let mut response = limited();
        *response.status_mut() = http::StatusCode::NOT_FOUND;
        response
    };
    drop(send(&mut client_returning(&layer, not_found), chat("my-model")).await);
    assert_eq!(available(&limiter, "my-model"), NONE);
}

#[tokio::test(start_paused = true)]
async fn configured_limits_ignore_headers() {
    let configured = Quota::new().rpm(3);
    let limiter = builder().provider(OPENAI).quota("my-model", configured).build().unwrap();
    assert_eq!(send_one(&limiter, "my-model").await, [2]);
    let limiter = builder().provider(OPENAI).quota("my-*", Quota::new()).build().unwrap();
    assert_eq!(send_one(&limiter, "my-model").await, NONE);
    let fallback = UnknownKey::Quota(Quota::new().rpm(9));
    let limiter = builder().unknown_key(fallback).build().unwrap();
    assert_eq!(send_one(&limiter, "my-model").await, [8]);
}

#[tokio::test(start_paused = true)]
async fn built_in_quota_is_replaced_by_headers() {
    // Built in: 500 requests and 200,000 tokens a minute.
    let limiter = builder().provider(OPENAI).build().unwrap();
    assert_eq!(send_one_without_headers(&limiter, "gpt-5-nano").await, [499, 200_000 - 57]);
    assert_eq!(send_one(&limiter, "gpt-5-nano").await, [498, 30_000 - 2 * 57]);
    assert_eq!(send_one(&limiter, "gpt-5-nano").await, [481, 28_001], "the lower remainder");
    assert_eq!(limiter.quotas().of("gpt-5-nano").limits()[1].amount(), 30_000);
    let layer = RateLimitLayer::new(limiter.clone());
    let mut silent = client_returning(&layer, || Frames::from(USAGE).into_response());
    drop(send(&mut silent, chat("gpt-4o")).await);
    assert_eq!(
        limiter.quotas().of("gpt-4o").limits()[1].amount(),
        30_000,
        "a response without headers changes no limit"
    );
}

#[tokio::test(start_paused = true)]
async fn model_named_like_a_glob_limits_no_other_model() {
    let limiter = builder().provider(OPENAI).build().unwrap();
    send_one(&limiter, "*").await;
    assert_eq!(send_one_without_headers(&limiter, "my-model").await, NONE);
}

#[tokio::test(start_paused = true)]
async fn refusal_without_limit_header_keeps_key_limited() {
    let limiter = builder().provider(OPENAI).unknown_key(UnknownKey::Learn).build().unwrap();
    let refusal = || {
        let mut response = Frames::from("{}").into_response();
        *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
        response.headers_mut().insert("x-ratelimit-remaining-tokens", "5".parse().unwrap());
        response
    };
    let layer = RateLimitLayer::new(limiter.clone());
    drop(send(&mut client_returning(&layer, refusal), chat("my-model")).await);
    assert_eq!(available(&limiter, "my-model"), [1]);
}

const NONE: [u64; 0] = [];

/// Requests in Anthropic's fast mode are charged to its own limits, which its own headers state.
#[tokio::test(start_paused = true)]
async fn limits_of_a_mode_are_learned_beside_those_of_the_model() {
    let limiter =
        builder().provider(ANTHROPIC).quota("claude-x", Quota::new().rpm(9)).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone());
    let answer = || {
        let usage = r#"{"type": "message", "usage": {"input_tokens": 12, "output_tokens": 9}}"#;
        let mut response = Frames::from(usage).into_response();
        response.headers_mut().insert("anthropic-fast-output-tokens-limit", 700.into());
        response.headers_mut().insert("anthropic-ratelimit-requests-limit", 50.into());
        response
    };
    let body = r#"{"model": "claude-x", "speed": "fast", "max_tokens": 50, "messages": []}"#;
    let request = http::Request::post("/v1/messages").body(body.to_owned()).unwrap();
    drop(send(&mut client_returning(&layer, answer), request).await);
    let limits = limiter.stats("claude-x:fast").limits;
    assert_eq!((limits.len(), limits[0].limit), (1, 700));
    assert_eq!(available(&limiter, "claude-x"), [9]);
}
