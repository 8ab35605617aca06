//! Backpressure via `poll_ready` on the state of several buckets: RPM, TPM and RPD.

use paceline::limiter::{Limiter, TokioClock};
use paceline::middleware::{Classified, RateLimitError, RateLimitLayer};
use paceline::quota::{Algorithm, Cost, Margin, Quota};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tower::{Layer, Service, ServiceExt, service_fn};

const S: Duration = Duration::from_secs(1);

/// Returns a service whose requests are a number of tokens of one key with these limits.
fn service(
    quota: Quota,
) -> (Limiter, impl Clone + Service<u64, Response = u64, Error = RateLimitError>) {
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    let limiter = Limiter::builder().margin(Margin::NONE).clock(TokioClock::new());
    let limiter = limiter.quota("gpt-4o", quota).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone())
        .classify(|tokens: &u64| Classified::new("gpt-4o", Cost::new().tokens(*tokens)))
        .observe(|_: &u64| None)
        .key("gpt-4o");
    let inner = service_fn(async |tokens: u64| Ok::<_, std::convert::Infallible>(tokens));
    (limiter, layer.layer(inner))
}

async fn is_ready<S: Service<u64>>(service: &mut S) -> bool {
    poll_fn(|cx| Poll::Ready(service.poll_ready(cx).is_ready())).await
}

/// Sends two requests and returns the time until the service is ready for a third.
async fn ready_after(quota: Quota, tokens: u64) -> Duration {
    let (limiter, mut service) = service(quota);
    for _ in 0..2 {
        assert!(is_ready(&mut service).await);
        service.call(tokens).await.unwrap_or_else(|_| panic!("the request fits"));
    }
    assert!(!is_ready(&mut service).await);
    let begin = limiter.now();
    assert!(service.ready().await.is_ok());
    let waited = limiter.now() - begin;
    // Once ready, the request is admitted immediately.
    assert!(service.call(tokens).await.is_ok());
    assert_eq!(limiter.now() - begin, waited);
    waited
}

#[tokio::test(start_paused = true)]
async fn d03_pending_while_requests_per_minute_are_used_up() {
    assert_eq!(ready_after(Quota::new().rpm(2).tpm(1_000).rpd(99), 10).await, 30 * S);
}

#[tokio::test(start_paused = true)]
async fn d03_pending_while_tokens_per_minute_are_below_typical() {
    assert_eq!(ready_after(Quota::new().rpm(99).tpm(60).rpd(99), 30).await, 30 * S);
}

#[tokio::test(start_paused = true)]
async fn d03_pending_while_requests_per_day_are_used_up() {
    assert_eq!(ready_after(Quota::new().rpm(99).tpm(1_000).rpd(2), 10).await, 43_200 * S);
}

#[tokio::test(start_paused = true)]
async fn d03_bucket_with_longest_wait_decides() {
    assert_eq!(ready_after(Quota::new().rpm(2).tpm(60).rpd(2), 30).await, 43_200 * S);
    assert_eq!(ready_after(Quota::new().rpm(2).tpm(40).rpd(99), 20).await, 30 * S);
}

#[tokio::test(start_paused = true)]
async fn d03_readiness_does_not_reserve() {
    let (limiter, service) = service(Quota::new().rpm(1).tpm(10).rpd(1));
    for _ in 0..100 {
        assert!(is_ready(&mut service.clone()).await);
    }
    let available: Vec<u64> =
        limiter.stats("gpt-4o").limits.iter().map(|limit| limit.available).collect();
    assert_eq!(available, [1, 10, 1]);
    let sent = tokio::time::timeout(Duration::from_secs(1), service.oneshot(10)).await;
    assert!(sent.is_ok());
}
