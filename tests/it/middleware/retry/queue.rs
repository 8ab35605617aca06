//! A retried request waits in the queue like any other.

use std::time::Duration;

use paceline::limiter::Limiter;
use paceline::middleware::{Ask, Journey, RateLimitLayer};
use paceline::provider::OPENAI;
use paceline::quota::{Algorithm, Quota};
use tower::{Service, ServiceExt};

use super::super::{S, available, builder, chat, read, settle_down};
use super::{Script, answer, limiter_with_quota, ok, refused};

#[tokio::test(start_paused = true)]
async fn siblings_of_refused_request_wait_and_other_keys_do_not() {
    let limiter = limiter_with_quota();
    let script = Script::new(&limiter, [refused("7"), ok(), ok(), ok()]);
    let mut client = script.client(&RateLimitLayer::new(limiter).retry(1));
    let first = tokio::spawn(client.ready().await.unwrap().call(chat("gpt-4o")));
    settle_down().await;
    client.ready().await.unwrap().call(chat("o1")).await.unwrap();
    client.oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    script.assert_call_times(&[0, 0, 7_000, 7_000]);
}

fn slow(rpm: u64) -> Limiter {
    let quota = Quota::new().rpm(rpm).with_algorithm(Algorithm::TokenBucket);
    builder().provider(OPENAI).quota("gpt-4o", quota).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn retry_waits_for_quota_behind_earlier_requests() {
    let limiter = slow(1);
    let failed = answer(500, &[], "oh".into());
    let script = Script::new(&limiter, [failed, ok(), ok()]);
    let mut client = script.client(&RateLimitLayer::new(limiter).retry(1));
    let journey = Journey::new();
    let mut first = chat("gpt-4o");
    first.extensions_mut().insert(journey.clone());
    let first = tokio::spawn(client.ready().await.unwrap().call(first));
    settle_down().await;
    client.oneshot(chat("gpt-4o")).await.unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(script.call_times(), [0, 60_000, 120_000]);
    assert!(journey.facts().waited > Duration::from_secs(119));
}

#[tokio::test(start_paused = true)]
async fn delay_beyond_deadline_returns_response_immediately() {
    for (first, late) in [
        (refused("7"), 6),
        (answer(500, &[("retry-after", "7")], "oh".into()), 6),
        (answer(500, &[], "oh".into()), 0),
    ] {
        let limiter = limiter_with_quota();
        let (status, begin) = (first.status(), limiter.now());
        let script = Script::new(&limiter, [first]);
        let layer = RateLimitLayer::new(limiter.clone()).max_wait(Duration::from_secs(late));
        let response = script.client(&layer.retry(3)).oneshot(chat("gpt-4o")).await.unwrap();
        assert_eq!((response.status(), limiter.now()), (status, begin));
        assert!(!read(response).await.unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn deadline_of_call_covers_all_attempts() {
    let limiter = limiter_with_quota();
    let script = Script::new(&limiter, [refused("7"), refused("7")]);
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(Ask::new().deadline(limiter.now() + 10 * S));
    let client = script.client(&RateLimitLayer::new(limiter).retry(9));
    assert_eq!(client.oneshot(request).await.unwrap().status(), 429);
    script.assert_call_times(&[0, 7_000]);
}

#[tokio::test(start_paused = true)]
async fn expected_wait_beyond_max_wait_returns_response() {
    let limiter = slow(1);
    let script = Script::new(&limiter, [answer(500, &[], "oh".into())]);
    let layer = RateLimitLayer::new(limiter.clone()).max_wait(Duration::from_secs(30)).retry(3);
    let journey = Journey::new();
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(journey.clone());
    let response = script.client(&layer).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 500);
    assert_eq!(read(response).await.unwrap(), "oh");
    let facts = journey.facts();
    assert_eq!((facts.tries(), facts.status.map(|s| s.as_u16())), (1, Some(500)));
}

#[tokio::test(start_paused = true)]
async fn attempt_before_refused_retry_stays_last() {
    let limiter = slow(2);
    let failed = [answer(500, &[], "one".into()), answer(502, &[], "two".into())];
    let script = Script::new(&limiter, failed);
    let layer = RateLimitLayer::new(limiter.clone()).max_wait(Duration::from_secs(10)).retry(3);
    let journey = Journey::new();
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(journey.clone());
    let response = script.client(&layer).oneshot(request).await.unwrap();
    assert_eq!(read(response).await.unwrap(), "two");
    let facts = journey.facts();
    let earlier: Vec<_> = facts.earlier.iter().filter_map(|one| one.status).collect();
    assert_eq!(
        (earlier, facts.status.map(|s| s.as_u16())),
        (vec![500.try_into().unwrap()], Some(502))
    );
}

#[tokio::test(start_paused = true)]
async fn limiter_closed_before_retry_returns_response() {
    let limiter = slow(1);
    let script = Script::new(&limiter, [refused("7")]);
    let client = script.client(&RateLimitLayer::new(limiter.clone()).retry(3));
    let journey = Journey::new();
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(journey.clone());
    let waiting = tokio::spawn(client.oneshot(request));
    settle_down().await;
    assert_eq!(journey.facts().granted_at, None, "the retry waits");
    limiter.close().await;
    assert_eq!(waiting.await.unwrap().unwrap().status(), 429);
    assert_eq!(journey.facts().tries(), 1);
}

#[tokio::test(start_paused = true)]
async fn retry_dropped_while_waiting_leaves_queue() {
    for (first, queued) in [(refused("7"), 1), (answer(500, &[], "oh".into()), 0)] {
        let limiter = slow(600);
        let script = Script::new(&limiter, [first, ok()]);
        let client = script.client(&RateLimitLayer::new(limiter.clone()).retry(3));
        let waiting = tokio::spawn(client.clone().oneshot(chat("gpt-4o")));
        settle_down().await;
        assert_eq!(limiter.stats("gpt-4o").waiting, queued);
        let before = available(&limiter, "gpt-4o");
        waiting.abort();
        waiting.await.unwrap_err();
        assert_eq!(limiter.stats("gpt-4o").waiting, 0);
        assert_eq!(available(&limiter, "gpt-4o"), before);
        client.oneshot(chat("gpt-4o")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn request_filling_concurrency_can_be_retried() {
    let limiter = builder().quota("gpt-4o", Quota::new().concurrency(1)).build().unwrap();
    let long = super::super::inner::Frames::default().data("x".repeat(20_000)).data("rest");
    let script = Script::new(&limiter, [answer(500, &[], long), ok()]);
    let client = script.client(&RateLimitLayer::new(limiter).retry(1));
    assert_eq!(client.oneshot(chat("gpt-4o")).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn close_ends_back_off_and_returns_response() {
    let limiter = limiter_with_quota();
    let failed = answer(503, &[("retry-after", "7")], "oh".into());
    let script = Script::new(&limiter, [failed]);
    let begin = limiter.now();
    let client = script.client(&RateLimitLayer::new(limiter.clone()).retry(3));
    let sent = tokio::spawn(client.oneshot(chat("gpt-4o")));
    settle_down().await;
    assert!(!sent.is_finished());
    limiter.close().await;
    let response = sent.await.unwrap().unwrap();
    assert_eq!((response.status().as_u16(), limiter.now()), (503, begin));
    assert_eq!(read(response).await.unwrap(), "oh");
}
