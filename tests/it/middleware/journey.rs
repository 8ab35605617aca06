//! The facts that a `Journey` reports about one request.

use std::time::Duration;

use http::{Request, Response};
use paceline::limiter::Limiter;
use paceline::middleware::{Facts, Journey, RateLimitLayer};
use paceline::provider::COMPATIBLE_USAGE;
use paceline::quota::{Cost, Dimension, Quota};
use tower::{Layer, ServiceExt};

use super::inner::{Frames, InnerError, Strict};
use super::{S, USAGE, builder, chat, client_returning, read, send};

fn one_a_minute() -> Limiter {
    let quota = Quota::new().rpm(1).with_algorithm(paceline::quota::Algorithm::TokenBucket);
    builder().provider(COMPATIBLE_USAGE).quota("gpt-4o", quota).build().unwrap()
}

fn with(journey: &Journey) -> Request<String> {
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(journey.clone());
    request
}

async fn facts_of(limiter: &Limiter, answer: &'static str) -> Facts {
    let layer = RateLimitLayer::new(limiter.clone());
    let mut client = client_returning(&layer, move || Frames::from(answer).into_response());
    let journey = Journey::new();
    assert_eq!(journey.facts(), Facts::default());
    let response = send(&mut client, with(&journey)).await;
    let underway = journey.facts();
    assert_eq!((underway.granted_at, underway.charged), (Some(limiter.now()), None));
    read(response).await.unwrap();
    journey.facts()
}

#[tokio::test(start_paused = true)]
async fn facts_are_complete_when_body_has_ended() {
    let limiter = one_a_minute();
    let begin = limiter.now();
    facts_of(&limiter, USAGE).await;
    let facts = facts_of(&limiter, USAGE).await;
    assert_eq!(facts.key, "gpt-4o");
    assert_eq!(facts.granted_at, Some(begin + 60 * S));
    assert_eq!(facts.waited, Duration::from_secs(60));
    assert!(facts.reserved.unwrap().amount(&Dimension::Tokens) >= 57);
    assert_eq!(facts.usage.map(|usage| (usage.input, usage.output)), Some((12, 9)));
    let charged = Cost::new().tokens(21).input_tokens(12).output_tokens(9);
    assert_eq!((facts.charged, facts.error), (Some(charged), None));
}

#[tokio::test(start_paused = true)]
async fn facts_include_error_in_body_of_success() {
    let error = "data: {\"error\": {\"code\": \"server_error\", \"message\": \"Sorry\"}}\n\n";
    let facts = facts_of(&one_a_minute(), error).await;
    assert_eq!(facts.error.unwrap().code(), Some("server_error"));
    assert_eq!((facts.usage, facts.charged), (None, facts.reserved));
}

#[tokio::test(start_paused = true)]
async fn facts_of_failed_request_include_charge() {
    let failing: Strict<Request<String>, Response<Frames>> =
        Strict::new(|_| async { Err(InnerError) });
    let layer = RateLimitLayer::new(one_a_minute());
    let journey = Journey::new();
    layer.layer(failing).oneshot(with(&journey)).await.unwrap_err();
    let facts = journey.facts();
    assert!(facts.charged.is_some());
    assert_eq!(facts.charged, facts.reserved);
}

#[tokio::test(start_paused = true)]
async fn facts_of_unsent_request_include_no_charge() {
    let silent: Strict<Request<String>, Response<Frames>> = Strict::new(|_| std::future::pending());
    let mut service = RateLimitLayer::new(one_a_minute()).layer(silent);
    let journey = Journey::new();
    let future = tower::Service::call(service.ready().await.unwrap(), with(&journey));
    drop(future);
    let facts = journey.facts();
    assert!(facts.reserved.is_some());
    assert_eq!(facts.charged, None);
}
