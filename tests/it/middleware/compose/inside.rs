//! Tower's layers inside the rate-limit layer. For `ConcurrencyLimit` see `call.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use paceline::middleware::RateLimitError;
use paceline::quota::Quota;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::ServiceList;
use tower::load::Constant;
use tower::load_shed::{LoadShed, error::Overloaded};
use tower::retry::Retry;
use tower::timeout::Timeout;
use tower::util::BoxCloneService;
use tower::{Layer, Service, ServiceExt};
use tower_test::mock;

use super::{RetryPolicy, flaky, gated, seconds_since};
use crate::middleware::inner::{InnerError, Strict};
use crate::middleware::{available, echo, held, limiter, settle_down, tokens};

const TIMEOUT: Duration = Duration::from_secs(10);

fn is_inner_error<E: std::error::Error + 'static>(error: RateLimitError) -> bool {
    error.into_inner::<E>().is_ok()
}

#[tokio::test(start_paused = true)]
async fn timeout_inside_layer_excludes_wait_and_keeps_charge() {
    let limiter = limiter(Quota::new().rpm(1).tpm(60).concurrency(2));
    let begin = limiter.now();
    let silent = Strict::<u64, u64>::new(|_| std::future::pending());
    let service = tokens(&limiter).layer(Timeout::new(silent, TIMEOUT));
    for ended in [10, 70] {
        let error = service.clone().oneshot(20).await.unwrap_err();
        assert!(is_inner_error::<tower::timeout::error::Elapsed>(error));
        assert_eq!(seconds_since(&limiter, begin), ended);
        assert_eq!(held(&limiter, "k"), [0, 0, 0]);
    }
    // The second request was charged when it ended, just now.
    assert_eq!(available(&limiter, "k")[1..], [40, 2]);
}

#[tokio::test(start_paused = true)]
async fn load_shed_inside_layer_is_inner_error_and_keeps_charge() {
    let limiter = limiter(Quota::new().rpm(9).tpm(60));
    let busy = echo().with_readiness(|| Poll::Pending);
    let error = tokens(&limiter).layer(LoadShed::new(busy)).oneshot(20).await.unwrap_err();
    assert!(is_inner_error::<Overloaded>(error));
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![8, 40], vec![0, 0]));
}

#[tokio::test(start_paused = true)]
async fn retry_inside_layer_is_charged_once() {
    let limiter = limiter(Quota::new().rpm(9).tpm(60));
    let inner = flaky(3);
    let calls = Arc::clone(&inner.calls);
    let service = tokens(&limiter).layer(Retry::new(RetryPolicy(9, |_: &InnerError| true), inner));
    assert_eq!(service.oneshot(20).await.unwrap(), 20);
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![8, 40], vec![0, 0]));
}

#[tokio::test(start_paused = true)]
async fn buffer_inside_layer_holds_no_request_waiting_for_quota() {
    for layer in [tokens, gated] {
        let limiter = limiter(Quota::new().rpm(1));
        let begin = limiter.now();
        let (inner, mut provider) = mock::pair::<u64, u64>();
        // A buffer of one: a request that occupied it while waiting would block all others.
        let buffer = Buffer::new(inner, 1);
        let service = layer(&limiter).layer(buffer.clone());
        let waiting: Vec<_> = (0..3).map(|n| tokio::spawn(service.clone().oneshot(n))).collect();
        let (_, respond) = provider.next_request().await.unwrap();
        respond.send_response(0);
        settle_down().await;
        let direct = tokio::spawn(buffer.oneshot(9));
        let (number, respond) = provider.next_request().await.unwrap();
        assert_eq!((number, seconds_since(&limiter, begin)), (9, 0));
        respond.send_response(9);
        direct.await.unwrap().unwrap();
        for expected in [1, 2] {
            let (number, respond) = provider.next_request().await.unwrap();
            assert_eq!((number, seconds_since(&limiter, begin)), (expected, 60 * expected));
            respond.send_response(number);
        }
        for sent in waiting {
            sent.await.unwrap().unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn balance_inside_layer_needs_a_buffer_to_clone() {
    let limiter = limiter(Quota::new().rpm(2));
    let begin = limiter.now();
    let endpoints = [echo(), echo()];
    let calls = endpoints.each_ref().map(|endpoint| Arc::clone(&endpoint.calls));
    let endpoints = endpoints.map(|endpoint| Constant::new(endpoint, 1_u32));
    let balance = Buffer::new(Balance::new(ServiceList::new(endpoints)), 16);
    let service = gated(&limiter).layer(balance);
    for expected in [0, 0, 30, 60] {
        service.clone().oneshot(1).await.unwrap();
        assert_eq!(seconds_since(&limiter, begin), expected);
    }
    assert_eq!(calls.iter().map(|calls| calls.load(Ordering::Relaxed)).sum::<usize>(), 4);
}

#[tokio::test(start_paused = true)]
async fn boxed_service_inside_layer_is_limited() {
    let limiter = limiter(Quota::new().rpm(1));
    let begin = limiter.now();
    let mut service = gated(&limiter).layer(BoxCloneService::new(echo()));
    for minute in 0..3 {
        service.ready().await.unwrap().call(1).await.unwrap();
        assert_eq!(seconds_since(&limiter, begin), 60 * minute);
    }
}
