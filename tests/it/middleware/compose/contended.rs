//! Tower's layers around and inside a layer with a gate, beside requests that acquire without a pause.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use paceline::limiter::{Limiter, Priority};
use paceline::middleware::RateLimitError;
use paceline::quota::{Algorithm, Dimension, Limit, Quota};
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::ServiceList;
use tower::load::Constant;
use tower::load_shed::{LoadShed, error::Overloaded};
use tower::retry::Retry;
use tower::{BoxError, Layer, Service, ServiceExt};

use super::{RetryPolicy, flaky, gated, send};
use crate::middleware::turns::{greedy, twenty_a_second};
use crate::middleware::{S, builder, echo, held, limiter, settle_down, tokens};

/// Returns a limiter of 20 requests a second, beside which two tasks acquire.
async fn contended() -> Limiter {
    let limiter = limiter(twenty_a_second());
    greedy(&limiter, &["k"], 2);
    tokio::time::sleep(S).await;
    limiter
}

/// Sends requests, each of which waits for its turn behind those of the two tasks.
async fn assert_served<T>(limiter: &Limiter, service: &mut T)
where
    T: Service<u64, Response = u64, Error: Into<BoxError>>,
{
    for _ in 0..20 {
        let begin = limiter.now();
        let sent = tokio::time::timeout(60 * S, send(service)).await;
        sent.expect("the request has its turn").unwrap();
        let waited = limiter.now() - begin;
        assert!(waited <= Duration::from_millis(350), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn gated_layer_in_buffer_beside_requests_is_served() {
    let limiter = contended().await;
    assert_served(&limiter, &mut Buffer::new(gated(&limiter).layer(echo()), 4)).await;
    assert_served(&limiter, &mut gated(&limiter).layer(Buffer::new(echo(), 4))).await;
}

#[tokio::test(start_paused = true)]
async fn gated_layer_in_balance_beside_requests_is_served() {
    let limiter = contended().await;
    let endpoint = |_| Constant::new(gated(&limiter).layer(echo()), 1_u32);
    assert_served(&limiter, &mut Balance::new(ServiceList::new([0, 1, 2].map(endpoint)))).await;
    let endpoint = |_| Constant::new(Buffer::new(echo(), 4), 1_u32);
    let balance = || Buffer::new(Balance::new(ServiceList::new([0, 1].map(endpoint))), 4);
    assert_served(&limiter, &mut gated(&limiter).layer(balance())).await;
}

#[tokio::test(start_paused = true)]
async fn gated_layer_in_retry_beside_requests_is_served() {
    let limiter = contended().await;
    for _ in 0..5 {
        let inner = flaky(3);
        let calls = Arc::clone(&inner.calls);
        let policy = RetryPolicy(9, |error: &RateLimitError| error.refused().is_none());
        let begin = limiter.now();
        let sent = Retry::new(policy, gated(&limiter).layer(inner)).oneshot(1);
        tokio::time::timeout(60 * S, sent).await.expect("every attempt has its turn").unwrap();
        let waited = limiter.now() - begin;
        assert!(waited <= Duration::from_millis(1_400), "{waited:?}");
        assert_eq!(calls.load(Ordering::Relaxed), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn load_shed_leaves_limit_to_requests_beside() {
    let limiter = limiter(twenty_a_second());
    let granted = greedy(&limiter, &["k"], 2);
    tokio::time::sleep(S).await;
    let mut service = LoadShed::new(gated(&limiter).layer(echo()));
    let (begin, mut sent) = (granted.load(Ordering::Relaxed), 0);
    for _ in 0..6_000 {
        match send(&mut service).await {
            Ok(_) => sent += 1,
            Err(error) => assert!(error.is::<Overloaded>()),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let others = granted.load(Ordering::Relaxed) - begin;
    assert!(sent > 0 && others + sent >= 1_140, "{sent} sent, {others} by others");
}

#[tokio::test(start_paused = true)]
async fn oneshots_of_gated_layer_under_join_all_succeed() {
    let limiter = limiter(Quota::new().rpm(2_000));
    let service = gated(&limiter).layer(echo());
    let sent = join_all((0..8_000).map(|number| service.clone().oneshot(number))).await;
    assert_eq!(sent.iter().filter(|result| result.is_ok()).count(), 8_000);
    assert_eq!((held(&limiter, "k"), limiter.stats("k").waiting), (vec![0], 0));
}

#[tokio::test(start_paused = true)]
async fn gated_layer_of_low_priority_sends_once_per_starvation_time() {
    let limiter = limiter(twenty_a_second());
    for _ in 0..2 {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            loop {
                let acquire = limiter.acquire("k", &Default::default());
                let permit = acquire.priority(Priority::INTERACTIVE).await.unwrap();
                permit.settle(&Default::default());
            }
        });
    }
    tokio::time::sleep(S).await;
    let mut service = tokens(&limiter).key("k").priority(Priority::BATCH).layer(echo());
    for _ in 0..3 {
        let begin = limiter.now();
        send(&mut service).await.unwrap();
        assert!(limiter.now() - begin <= 31 * S, "{:?}", limiter.now() - begin);
    }
}

#[tokio::test(start_paused = true)]
async fn call_after_wait_at_gate_of_another_flow_has_turn() {
    let limiter = limiter(twenty_a_second());
    for _ in 0..2 {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            loop {
                let permit = limiter.acquire("k", &Default::default()).flow("greedy").await;
                permit.unwrap().settle(&Default::default());
            }
        });
    }
    tokio::time::sleep(S).await;
    let mut service = tokens(&limiter).key("k").flow("other").layer(echo());
    for _ in 0..20 {
        service.ready().await.unwrap();
        let begin = limiter.now();
        service.call(1).await.unwrap();
        assert_eq!(limiter.now(), begin, "the call takes the turn of its gate");
        settle_down().await;
    }
}

#[tokio::test(start_paused = true)]
async fn uncalled_service_leaves_limit_to_task_beside() {
    let requests = Limit::per_second(Dimension::Requests, 20).unwrap().with_burst(1);
    let quota = Quota::new().limit(requests).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("k", quota).build().unwrap();
    let granted = greedy(&limiter, &["k"], 1);
    let layer = gated(&limiter);
    tokio::spawn(async move {
        loop {
            let _ = layer.layer(echo()).ready().await.unwrap();
            tokio::time::sleep(Duration::from_millis(7)).await;
        }
    });
    let begin = granted.load(Ordering::Relaxed);
    tokio::time::sleep(60 * S).await;
    let granted = granted.load(Ordering::Relaxed) - begin;
    assert!(granted >= 1_140, "{granted} of 1,200");
}
