//! The longest waits of quotas under a layer: its services don't wait for keys that refuse.

use paceline::limiter::{AcquireError, Code};
use paceline::middleware::RateLimitError;
use paceline::quota::{Cost, Quota};
use tower::{Layer, Service, ServiceExt};

use super::{S, builder, echo, is_ready, limiter, settle_down, tokens};

#[tokio::test(start_paused = true)]
async fn service_is_ready_and_call_fails_while_key_rejects() {
    for quota in [Quota::new().concurrency(1).reject(), Quota::new().rpd(1).max_wait(60 * S)] {
        let limiter = limiter(quota);
        let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
        let begin = limiter.now();
        let mut service = tokens(&limiter).key("k").layer(echo());
        assert!(is_ready(&mut service).await);
        let RateLimitError::Limited(error) = service.call(0).await.unwrap_err() else {
            panic!("the inner service was called");
        };
        assert!(matches!(error, AcquireError::DeadlineExceeded { .. }), "{error}");
        assert_eq!(limiter.now(), begin);
        drop(permit);
    }
}

#[tokio::test(start_paused = true)]
async fn service_waits_for_one_key_until_another_rejects() {
    let waits = Quota::new().concurrency(1);
    let rejects = Quota::new().tpm(5).reject();
    let limiter = builder().quota("k", waits).quota("budget", rejects).build().unwrap();
    let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
    let layer = tokens(&limiter).key("k").scope("budget");
    let mut service = layer.layer(echo());
    assert!(!is_ready(&mut service).await, "the model waits");
    limiter.acquire("budget", &Cost::new().tokens(5)).await.unwrap();
    drop(permit);
    service.ready().await.unwrap();
    let error = service.call(1).await.unwrap_err();
    let RateLimitError::Limited(error) = error else { panic!("the inner service was called") };
    let refused = error.refused().unwrap();
    assert_eq!((&*refused.key, refused.code), ("budget", Code::TpmExceeded));
}

#[tokio::test(start_paused = true)]
async fn call_that_waits_is_refused_once_the_budget_is_spent() {
    let waits = Quota::new().concurrency(1);
    let rejects = Quota::new().tpm(5).reject();
    let limiter = builder().quota("k", waits).quota("budget", rejects).build().unwrap();
    let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
    let mut service = tokens(&limiter).scope("budget").layer(echo());
    let sent = service.ready().await.unwrap().call(3);
    let sent = tokio::spawn(sent);
    settle_down().await;
    limiter.acquire("budget", &Cost::new().tokens(4)).await.unwrap();
    settle_down().await;
    assert!(sent.is_finished());
    assert!(matches!(sent.await.unwrap(), Err(RateLimitError::Limited(_))));
    drop(permit);
}
