//! Tower's layers around the rate-limit layer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use paceline::middleware::{Classified, RateLimitError, RateLimitLayer};
use paceline::quota::{Algorithm, Cost, Quota, Usd};
use parking_lot::Mutex;
use tokio::time::error::Elapsed;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::ServiceList;
use tower::limit::ConcurrencyLimit;
use tower::load::Constant;
use tower::load_shed::{LoadShed, error::Overloaded};
use tower::retry::Retry;
use tower::timeout::Timeout;
use tower::util::{BoxCloneSyncService, MapErrLayer};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};
use tower_test::mock;

use super::{RetryPolicy, flaky, gated, seconds_since, send};
use crate::middleware::inner::Strict;
use crate::middleware::{available, builder, echo, held, limiter, tokens};

const MINUTE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn load_shed_rejects_requests_if_gate_is_pending() {
    let limiter = limiter(Quota::new().rpm(1));
    let mut service = LoadShed::new(gated(&limiter).layer(echo()));
    for _ in 0..3 {
        send(&mut service).await.unwrap();
        for _ in 0..3 {
            assert!(send(&mut service).await.unwrap_err().is::<Overloaded>());
        }
        tokio::time::advance(MINUTE).await;
        assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![1], vec![0]));
    }
}

#[tokio::test(start_paused = true)]
async fn load_shed_without_gate_rejects_no_request() {
    let limiter = limiter(Quota::new().rpm(1));
    let begin = limiter.now();
    let mut service = LoadShed::new(tokens(&limiter).layer(echo()));
    for minute in 0..3 {
        send(&mut service).await.unwrap();
        assert_eq!(seconds_since(&limiter, begin), 60 * minute);
    }
}

#[tokio::test(start_paused = true)]
async fn buffer_keeps_order_and_dropped_requests_are_free() {
    for layer in [tokens, gated] {
        let limiter = limiter(Quota::new().rpm(1));
        let begin = limiter.now();
        let (inner, mut provider) = mock::pair::<u64, u64>();
        let limited = layer(&limiter).layer(inner);
        let mut service = Buffer::new(limited, 16);
        let mut tasks = Vec::new();
        for number in 0..6 {
            tasks.push(tokio::spawn(service.ready().await.unwrap().call(number)));
        }
        tasks.remove(2).abort();
        for (minute, expected) in [0, 1, 3, 4, 5].into_iter().enumerate() {
            let (number, respond) = provider.next_request().await.unwrap();
            assert_eq!(number, expected);
            assert_eq!(seconds_since(&limiter, begin), 60 * minute as u64);
            respond.send_response(number);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn timeout_ends_wait_after_call_without_charge() {
    let limiter = limiter(Quota::new().rpm(1));
    let begin = limiter.now();
    let mut service = Timeout::new(tokens(&limiter).layer(echo()), TIMEOUT);
    send(&mut service).await.unwrap();
    for waited in [10, 20, 30] {
        assert!(send(&mut service).await.unwrap_err().is::<tower::timeout::error::Elapsed>());
        assert_eq!((seconds_since(&limiter, begin), limiter.stats("k").waiting), (waited, 0));
    }
    tokens(&limiter).layer(echo()).oneshot(1).await.unwrap();
    assert_eq!(seconds_since(&limiter, begin), 60);
}

#[tokio::test(start_paused = true)]
async fn timeout_excludes_wait_at_gate() {
    let limiter = limiter(Quota::new().rpm(1));
    let begin = limiter.now();
    let mut service = Timeout::new(gated(&limiter).layer(echo()), TIMEOUT);
    for minute in 0..3 {
        send(&mut service).await.unwrap();
        assert_eq!(seconds_since(&limiter, begin), 60 * minute);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_charges_each_attempt_and_waits_for_quota() {
    for layer in [tokens, gated] {
        let limiter = limiter(Quota::new().rpm(2));
        let begin = limiter.now();
        let inner = flaky(3);
        let calls = Arc::clone(&inner.calls);
        let policy = RetryPolicy(9, |error: &RateLimitError| error.refused().is_none());
        Retry::new(policy, layer(&limiter).layer(inner)).oneshot(1).await.unwrap();
        // Two immediately, then one every 30 s.
        assert_eq!((calls.load(Ordering::Relaxed), seconds_since(&limiter, begin)), (4, 60));
        assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![0], vec![0]));
    }
}

#[tokio::test(start_paused = true)]
async fn retry_policy_can_distinguish_refusal_from_service_error() {
    let limiter = limiter(Quota::new().rpm(1));
    let policy = RetryPolicy(9, |error: &RateLimitError| error.refused().is_none());
    let mut service = Retry::new(policy, tokens(&limiter).reject().layer(echo()));
    service.ready().await.unwrap().call(1).await.unwrap();
    let begin = limiter.now();
    let error = service.ready().await.unwrap().call(1).await.unwrap_err();
    assert_eq!((error.retry_after(), limiter.now()), (Some(MINUTE), begin));
}

#[tokio::test(start_paused = true)]
async fn balance_prefers_endpoint_with_quota() {
    let quota = |rpm| Quota::new().rpm(rpm).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("a", quota(1)).quota("b", quota(3)).build().unwrap();
    let begin = limiter.now();
    let endpoint = |key| Constant::new(tokens(&limiter).key(key).layer(echo()), 1_u32);
    let mut service = Balance::new(ServiceList::new(["a", "b"].map(endpoint)));
    // First all requests of both, then one of `b` every 20 s, and at 60 s one of `a`.
    for expected in [0, 0, 0, 0, 20, 40, 60, 60] {
        send(&mut service).await.unwrap();
        assert_eq!(seconds_since(&limiter, begin), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn balance_sends_nothing_to_account_whose_money_is_spent() {
    let budget = Quota::new().usd_per_day(Usd::from_dollars(10));
    let builder = builder().quota("spent", budget.clone()).quota("left", budget);
    let limiter = builder.build().unwrap();
    let dollars = |amount| Cost::new().usd(Usd::from_dollars(amount));
    limiter.acquire("spent", &dollars(10)).await.unwrap().settle(&dollars(10));
    let begin = limiter.now();
    let endpoint = |key: &'static str| {
        let layer = RateLimitLayer::new(limiter.clone()).key(key);
        let layer = layer.classify(move |_: &u64| Classified::new(key, dollars(1)));
        let inner = Strict::new(move |_: u64| async move { Ok(key) });
        Constant::new(layer.observe(|_: &&str| None).layer(inner), 1_u32)
    };
    let mut service = Balance::new(ServiceList::new(["spent", "left"].map(endpoint)));
    for _ in 0..10 {
        assert_eq!(service.ready().await.unwrap().call(0).await.unwrap(), "left");
    }
    assert_eq!(seconds_since(&limiter, begin), 0);
    // Both are spent until the end of the day.
    service.ready().await.unwrap().call(0).await.unwrap();
    assert!(seconds_since(&limiter, begin) > 0);
}

#[tokio::test(start_paused = true)]
async fn call_all_sends_and_responds_in_order() {
    for layer in [tokens, gated] {
        let limiter = limiter(Quota::new().rpm(1));
        let begin = limiter.now();
        let answers = layer(&limiter).layer(echo()).call_all(stream::iter(0..5));
        let answers: Vec<_> = answers.map(Result::unwrap).collect().await;
        assert_eq!((answers, seconds_since(&limiter, begin)), ((0..5).collect(), 240));
    }
}

#[tokio::test(start_paused = true)]
async fn call_all_unordered_sends_in_order() {
    for layer in [tokens, gated] {
        let limiter = limiter(Quota::new().rpm(1));
        let begin = limiter.now();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&sent);
        // The first response arrives last.
        let inner = Strict::new(move |number: u64| {
            log.lock().push(number);
            let late = if number == 0 { 600 } else { 0 };
            async move {
                tokio::time::sleep(Duration::from_secs(late)).await;
                Ok(number)
            }
        });
        let answers = layer(&limiter).layer(inner).call_all(stream::iter(0..5)).unordered();
        let answers: Vec<_> = answers.map(Result::unwrap).collect().await;
        assert_eq!((answers, seconds_since(&limiter, begin)), (vec![1, 2, 3, 4, 0], 600));
        assert_eq!(*sent.lock(), (0..5).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn oneshot_dropped_while_waiting_wakes_next_without_charge() {
    for layer in [tokens, gated] {
        let limiter = limiter(Quota::new().rpm(1));
        let begin = limiter.now();
        layer(&limiter).layer(echo()).oneshot(1).await.unwrap();
        let dropped = layer(&limiter).layer(echo()).oneshot(1);
        let next = tokio::spawn(async { tokio::time::timeout(TIMEOUT, dropped).await });
        let behind = tokio::spawn(layer(&limiter).layer(echo()).oneshot(1));
        let _: Elapsed = next.await.unwrap().unwrap_err();
        behind.await.unwrap().unwrap();
        assert_eq!(seconds_since(&limiter, begin), 60);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrency_limit_counts_request_waiting_for_quota() {
    let quota = Quota::new().rpm(1).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("scarce", quota).build().unwrap();
    let begin = limiter.now();
    let layer = RateLimitLayer::new(limiter.clone())
        .classify(|key: &&'static str| Classified::new(*key, Cost::new()))
        .observe(|_: &()| None);
    let inner = Strict::<&'static str, ()>::new(|_| async { Ok(()) });
    let service = ConcurrencyLimit::new(layer.layer(inner), 1);
    service.clone().oneshot("scarce").await.unwrap();
    let waiting = tokio::spawn(service.clone().oneshot("scarce"));
    crate::middleware::settle_down().await;
    service.clone().oneshot("plenty").await.unwrap();
    assert_eq!(seconds_since(&limiter, begin), 60);
    waiting.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn boxed_clones_share_one_limit() {
    let limiter = limiter(Quota::new().rpm(5));
    let service = BoxCloneSyncService::new(gated(&limiter).reject().layer(echo()));
    let mut sent = 0;
    for _ in 0..10 {
        sent += u64::from(send(&mut service.clone()).await.is_ok());
    }
    assert_eq!(sent, 5);
}

#[tokio::test(start_paused = true)]
async fn option_layer_limits_only_if_present() {
    let limiter = limiter(Quota::new().rpm(1));
    let errors = MapErrLayer::new(BoxError::from as fn(RateLimitError) -> BoxError);
    let reject = (errors, tokens(&limiter).reject());
    for (layer, expected) in [(Some(reject), 1), (None, 3)] {
        let inner = echo().map_err(BoxError::from);
        let mut service = ServiceBuilder::new().option_layer(layer).service(inner);
        let mut sent = 0;
        for _ in 0..3 {
            sent += u64::from(send(&mut service).await.is_ok());
        }
        assert_eq!(sent, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn service_builder_first_layer_is_outermost() {
    let limiter = limiter(Quota::new().rpm(1));
    let layer = tokens(&limiter);
    let mut around = ServiceBuilder::new().timeout(TIMEOUT).layer(layer.clone()).service(echo());
    send(&mut around).await.unwrap();
    assert!(send(&mut around).await.unwrap_err().is::<tower::timeout::error::Elapsed>());
    // Inside the layer, the timeout counts only the inner call.
    let mut inside = ServiceBuilder::new().layer(layer).timeout(TIMEOUT).service(echo());
    send(&mut inside).await.unwrap();
}
