//! The longest waits of quotas: each counts for the limits of its key alone.

use std::time::Duration;

use futures_util::poll;
use paceline::limiter::{AcquireError, Code, Limiter, TokioClock};
use paceline::quota::{Algorithm, Dimension, Limit, Usd, Window};
use paceline::{Cost, Quota};

use super::{S, builder, paused, settle_down, tokens};

const KEYS: [&str; 2] = ["account", "model"];

/// Returns a limiter whose account may spend 100 micro-dollars a day and refuses at once, and whose model admits a
/// request each second.
fn budget_and_model() -> Limiter {
    let model = Quota::new().limit(Limit::per_second(Dimension::Requests, 1));
    builder()
        .quota("account", Quota::new().usd_per_day(Usd::from_micros(100)).reject())
        .quota("model", model.with_algorithm(Algorithm::TokenBucket))
        .clock(TokioClock::new())
        .build()
        .unwrap()
}

fn usd(micros: u64) -> Cost {
    Cost::new().usd(Usd::from_micros(micros))
}

#[track_caller]
fn assert_late(error: &AcquireError, key: &str, code: Code) {
    let AcquireError::DeadlineExceeded { refused, .. } = error else { panic!("{error}") };
    assert_eq!((&*refused.key, refused.code), (key, code));
}

#[tokio::test(start_paused = true)]
async fn rejecting_budget_refuses_at_once_and_model_waits() {
    let limiter = budget_and_model();
    let begin = limiter.now();
    limiter.acquire_all(&KEYS, &usd(40)).await.unwrap();
    limiter.acquire_all(&KEYS, &usd(40)).await.unwrap();
    assert_eq!(limiter.now() - begin, S);
    // The model is short for a second, and the budget until tomorrow.
    let error = limiter.acquire_all(&KEYS, &usd(21)).await.unwrap_err();
    assert_late(&error, "account", Code::LimitExceeded);
    assert!(error.refused().unwrap().retry_after() > Some(S), "until the next day");
    assert_eq!(limiter.now() - begin, S);
    limiter.acquire_all(&KEYS, &usd(20)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn budget_short_for_less_time_than_model_refuses() {
    let limiter = budget_and_model();
    limiter.quotas().set("model", &Quota::new().rpd(1)).unwrap();
    let second = Limit::usd(Usd::from_micros(100), Window::SECOND).unwrap();
    limiter.quotas().set("account", &Quota::new().limit(second).reject()).unwrap();
    limiter.acquire_all(&KEYS, &usd(100)).await.unwrap();
    let error = limiter.acquire_all(&KEYS, &usd(100)).await.unwrap_err();
    assert_late(&error, "account", Code::LimitExceeded);
}

#[tokio::test(start_paused = true)]
async fn budget_spent_by_others_refuses_waiting_requests_at_once() {
    let limiter = budget_and_model();
    limiter.acquire_all(&KEYS, &usd(10)).await.unwrap();
    let begin = limiter.now();
    let wait = |cost| tokio::spawn(limiter.acquire_all(&KEYS, &cost).into_future());
    let [large, small, last] = [wait(usd(50)), wait(usd(5)), wait(usd(50))];
    settle_down().await;
    let other = limiter.acquire("account", &usd(60)).await.unwrap();
    settle_down().await;
    for refused in [large, last] {
        assert!(refused.is_finished(), "30 micro-dollars are left");
        assert_late(&refused.await.unwrap().unwrap_err(), "account", Code::LimitExceeded);
    }
    assert_eq!(limiter.now(), begin);
    small.await.unwrap().unwrap();
    assert_eq!(limiter.stats("model").waiting, 0);
    other.settle(&usd(0));
    limiter.acquire_all(&KEYS, &usd(50)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn charge_above_reservation_refuses_waiting_requests() {
    let limiter = budget_and_model();
    let first = limiter.acquire_all(&KEYS, &usd(10)).await.unwrap();
    let waiting = tokio::spawn(limiter.acquire_all(&KEYS, &usd(50)).into_future());
    settle_down().await;
    assert!(!waiting.is_finished());
    let begin = limiter.now();
    first.settle(&usd(80));
    assert_late(&waiting.await.unwrap().unwrap_err(), "account", Code::LimitExceeded);
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn wait_above_that_of_quota_is_refused_at_once() {
    let limiter = paused(Quota::new().rpm(60).max_wait(5 * S));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let begin = limiter.now();
    let error = limiter.acquire("k", &Cost::new().requests(6)).await.unwrap_err();
    assert_late(&error, "k", Code::RpmExceeded);
    assert_eq!(limiter.now(), begin);
    limiter.acquire("k", &Cost::new().requests(5)).await.unwrap();
    assert_eq!(limiter.now() - begin, 5 * S);
}

#[tokio::test(start_paused = true)]
async fn shorter_of_the_waits_of_quota_and_request_counts() {
    let limiter = paused(Quota::new().rpm(60).max_wait(5 * S));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let refused = |seconds: u32, requests| {
        let acquire = limiter.acquire("k", &Cost::new().requests(requests)).max_wait(seconds * S);
        async move {
            let mut acquire = std::pin::pin!(acquire);
            matches!(poll!(acquire.as_mut()), std::task::Poll::Ready(Err(_)))
        }
    };
    assert!(refused(3, 4).await, "the request's own bound is shorter");
    assert!(!refused(9, 4).await);
    assert!(refused(9, 6).await, "the quota's bound is shorter");
}

#[tokio::test(start_paused = true)]
async fn requests_before_it_count_to_the_wait_for_a_quota() {
    let limiter = paused(Quota::new().rpm(60).max_wait(5 * S));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let begin = limiter.now();
    let first = tokio::spawn(limiter.acquire("k", &Cost::new().requests(3)).into_future());
    settle_down().await;
    let late = limiter.acquire("k", &Cost::new().requests(3)).await.unwrap_err();
    assert_late(&late, "k", Code::OthersWaiting);
    assert_eq!(limiter.now(), begin);
    limiter.acquire("k", &Cost::new().requests(2)).await.unwrap();
    assert_eq!(limiter.now() - begin, 5 * S);
    first.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn request_that_others_may_let_fit_waits_as_long_as_quota_says() {
    let outputs = |tokens| Cost::new().output_tokens(tokens);
    let limiter = paused(Quota::new().otpm(1_000).max_wait(5 * S));
    let in_flight = limiter.acquire("k", &outputs(700)).await.unwrap();
    let begin = limiter.now();
    let waiting = limiter.acquire("k", &outputs(400)).await;
    assert!(matches!(waiting, Err(AcquireError::DeadlineExceeded { .. })));
    let capacity = limiter.wait_for_capacity("k", &outputs(500)).await;
    assert!(matches!(capacity, Err(AcquireError::DeadlineExceeded { .. })));
    assert_eq!(limiter.now() - begin, 10 * S);
    let waiting = tokio::spawn(limiter.acquire("k", &outputs(600)).into_future());
    let capacity = tokio::spawn(limiter.wait_for_capacity("k", &outputs(600)));
    tokio::time::sleep(2 * S).await;
    assert!(!waiting.is_finished() && !capacity.is_finished());
    in_flight.settle(&outputs(10));
    waiting.await.unwrap().unwrap().settle(&outputs(10));
    capacity.await.unwrap().unwrap();
    assert_eq!(limiter.now() - begin, 12 * S);
}

#[tokio::test(start_paused = true)]
async fn rejecting_key_refuses_requests_and_capacity_at_once() {
    let limiter = paused(Quota::new().concurrency(1).reject());
    let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
    let begin = limiter.now();
    let error = limiter.acquire("k", &Cost::new()).await.unwrap_err();
    assert_eq!(error.refused().map(|refused| refused.code), Some(Code::ConcurrencyExceeded));
    let error = limiter.wait_for_capacity("k", &Cost::new()).await.unwrap_err();
    assert_eq!(error.refused().map(|refused| refused.code), Some(Code::ConcurrencyExceeded));
    assert_eq!(limiter.now(), begin);
    drop(permit);
    limiter.wait_for_capacity("k", &Cost::new()).await.unwrap();
    limiter.acquire("k", &Cost::new()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn glob_that_rejects_does_so_for_each_key() {
    let quota = Quota::new().rpm(1).reject();
    let limiter = builder().quota("tenant:*", quota).clock(TokioClock::new()).build().unwrap();
    for key in ["tenant:a", "tenant:b"] {
        limiter.acquire(key, &Cost::new()).await.unwrap();
        assert_late(&limiter.acquire(key, &Cost::new()).await.unwrap_err(), key, Code::RpmExceeded);
    }
}

#[tokio::test(start_paused = true)]
async fn quota_changed_to_reject_refuses_waiting_requests() {
    let limiter = paused(Quota::new().rpm(1));
    limiter.acquire("k", &Cost::new()).await.unwrap();
    let waiting = tokio::spawn(limiter.acquire("k", &Cost::new()).into_future());
    settle_down().await;
    assert!(!waiting.is_finished());
    let begin = limiter.now();
    limiter.quotas().set("k", &Quota::new().rpm(1).reject()).unwrap();
    assert_late(&waiting.await.unwrap().unwrap_err(), "k", Code::RpmExceeded);
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn limits_of_a_request_bound_its_wait() {
    let limiter = builder().clock(TokioClock::new()).build().unwrap();
    let limits = Quota::new().rpm(1).reject();
    let acquire = || limiter.acquire("user:7", &Cost::new()).limits(&limits);
    acquire().await.unwrap();
    assert_late(&acquire().await.unwrap_err(), "user:7", Code::RpmExceeded);
}

#[tokio::test(start_paused = true)]
async fn refused_request_leaves_no_trace_in_its_other_keys() {
    let limiter = budget_and_model();
    limiter.acquire_all(&KEYS, &usd(10)).await.unwrap();
    let mut waiting = std::pin::pin!(limiter.acquire_all(&KEYS, &usd(50)).into_future());
    assert!(poll!(waiting.as_mut()).is_pending());
    limiter.acquire("account", &usd(60)).await.unwrap();
    assert!(poll!(waiting.as_mut()).is_ready());
    let [account, model] = KEYS.map(|key| limiter.stats(key));
    assert_eq!((account.waiting, model.waiting), (0, 0));
    assert_eq!((account.limits[0].used, account.limits[0].held), (70, 0));
    assert_eq!(model.limits[0].used, 1);
}

#[test]
fn immediate_request_with_deadline_names_the_short_limit() {
    let (limiter, _clock) = super::manual(Quota::new().tpm(60));
    drop(limiter.try_acquire("k", &tokens(60)).unwrap());
    let refused = limiter.acquire("k", &tokens(60)).max_wait(Duration::ZERO).try_now();
    assert_eq!(refused.unwrap_err().code, Code::TpmExceeded);
}
