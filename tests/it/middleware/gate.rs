//! Readiness: `poll_ready` of a layer with keys.

use paceline::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use paceline::limiter::RateLimited;
use paceline::quota::{Cost, Quota};
use tower::{Layer, Service, ServiceExt};

use super::inner::WakeCounter;
use super::{S, available, echo, held, is_ready, limiter, settle_down, tokens};

#[tokio::test(start_paused = true)]
async fn clones_and_layers_share_one_limit() {
    let limiter = limiter(Quota::new().rpm(5));
    let layer = tokens(&limiter).reject();
    let mut sent = 0;
    for _ in 0..1_000 {
        let mut service = layer.layer(echo()).clone();
        sent += u64::from(service.ready().await.unwrap().call(1).await.is_ok());
    }
    assert_eq!(sent, 5);
}

#[tokio::test(start_paused = true)]
async fn ready_services_dropped_or_kept_block_no_other() {
    let limiter = limiter(Quota::new().rpm(1).concurrency(1));
    let layer = tokens(&limiter).key("k");
    let mut kept = Vec::new();
    for number in 0..100 {
        let mut service = layer.layer(echo());
        assert!(is_ready(&mut service).await);
        kept.extend((number % 2 == 0).then_some(service));
    }
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![1, 1], vec![0, 0]));
    let begin = limiter.now();
    layer.layer(echo()).oneshot(1).await.unwrap();
    assert_eq!(limiter.now(), begin);
    // The same holds after the gate was closed and opened again.
    layer.layer(echo()).oneshot(1).await.unwrap();
    assert_eq!(limiter.now() - begin, 60 * S);
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn ready_service_stays_ready_until_call() {
    let limiter = limiter(Quota::new().rpm(1));
    let layer = tokens(&limiter).key("k");
    let mut service = layer.layer(echo());
    assert!(is_ready(&mut service).await);
    layer.layer(echo()).oneshot(1).await.unwrap();
    assert!(!is_ready(&mut layer.layer(echo())).await);
    assert!(is_ready(&mut service).await);
    let begin = limiter.now();
    service.call(1).await.unwrap();
    assert_eq!(limiter.now() - begin, 60 * S);
    assert!(!is_ready(&mut service).await);
}

#[tokio::test(start_paused = true)]
async fn open_gate_stays_open_while_inner_service_is_pending() {
    let limiter = limiter(Quota::new().rpm(1));
    let layer = tokens(&limiter).key("k");
    let busy = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&busy);
    let inner = echo().with_readiness(move || match still.load(Ordering::Relaxed) {
        true => Poll::Pending,
        false => Poll::Ready(Ok(())),
    });
    let mut service = layer.layer(inner);
    assert!(!is_ready(&mut service).await);
    layer.layer(echo()).oneshot(1).await.unwrap();
    busy.store(false, Ordering::Relaxed);
    assert!(is_ready(&mut service).await);
}

#[tokio::test(start_paused = true)]
async fn gate_opens_when_typical_request_fits() {
    let limiter = limiter(Quota::new().tpm(60));
    let mut service = tokens(&limiter).key("k").layer(echo());
    // The first request defines the typical cost: 30 tokens, at one per second.
    for expected in [0, 0, 30, 60] {
        service.ready().await.unwrap();
        assert_eq!((limiter.now() - Timestamp::UNIX_EPOCH).as_secs() % 100, expected);
        service.call(30).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn gate_is_closed_while_key_cools_down() {
    let limiter = limiter(Quota::new().rpm(600));
    let mut service = tokens(&limiter).key("k").layer(echo());
    let begin = limiter.now();
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(7))));
    service.ready().await.unwrap();
    assert_eq!(limiter.now() - begin, 7 * S);
}

#[tokio::test(start_paused = true)]
async fn woken_service_dropped_wakes_next() {
    let limiter = limiter(Quota::new().concurrency(1));
    let layer = tokens(&limiter).key("k");
    let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
    let mut services: Vec<_> = (0..3).map(|_| layer.layer(echo())).collect();
    let wakers: Vec<Arc<WakeCounter>> = (0..3).map(|_| Arc::default()).collect();
    for (service, waker) in services.iter_mut().zip(&wakers) {
        assert!(service.poll_ready(&mut Context::from_waker(&waker.waker())).is_pending());
    }
    // A second waiter wakes the first, which is polled regularly from then on.
    let begin: Vec<_> = wakers.iter().map(|waker| waker.count()).collect();
    assert_eq!(begin, [1, 0, 0]);
    drop(permit);
    let calls = |waker: &Arc<WakeCounter>, begin: &usize| waker.count() - begin;
    let count = || wakers.iter().zip(&begin).map(|(w, b)| calls(w, b)).collect::<Vec<_>>();
    // The second one watches the first, which may be forgotten.
    assert_eq!(count(), [1, 1, 0]);
    drop(services.remove(0));
    assert_eq!(count(), [1, 2, 1]);
    assert!(is_ready(&mut services[0]).await);
    assert_eq!(count(), [1, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn services_waiting_at_gate_all_pass_eventually() {
    let limiter = limiter(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let layer = tokens(&limiter).key("k");
    let sent: Vec<_> = (0..50).map(|_| tokio::spawn(layer.layer(echo()).oneshot(1))).collect();
    settle_down().await;
    let begin = limiter.now();
    for sent in sent {
        sent.await.unwrap().unwrap();
    }
    assert_eq!(limiter.now() - begin, 50 * S);
}

#[tokio::test(start_paused = true)]
async fn layer_without_key_is_always_ready() {
    let limiter = limiter(Quota::new().rpm(1));
    let layer = tokens(&limiter);
    layer.layer(echo()).oneshot(1).await.unwrap();
    assert!(is_ready(&mut layer.layer(echo())).await);
}

#[tokio::test(start_paused = true)]
async fn limit_reduced_below_typical_cost_still_opens_gate() {
    let limiter = limiter(Quota::new().tpm(600));
    let layer = tokens(&limiter).key("k");
    for _ in 0..3 {
        layer.layer(echo()).oneshot(100).await.unwrap();
    }
    // The typical cost is 100, above the limit of 60, which is exhausted.
    let quota = Quota::new().tpm(60).with_algorithm(paceline::quota::Algorithm::TokenBucket);
    limiter.quotas().set("k", &quota).unwrap();
    let begin = limiter.now();
    let mut service = layer.layer(echo());
    assert!(!is_ready(&mut service).await);
    service.ready().await.unwrap();
    // The gate opens when the whole limit is available, and a request that fits is sent
    // immediately.
    let opened = limiter.now();
    assert_eq!(available(&limiter, "k"), [60]);
    assert!(opened > begin);
    service.call(60).await.unwrap();
    assert_eq!(limiter.now(), opened);
    // The same holds when the limit changes while the gate waits.
    limiter.quotas().set("k", &Quota::new().tpm(600)).unwrap();
    let mut waiting = tokio::spawn(layer.layer(echo()).oneshot(1));
    settle_down().await;
    limiter.quotas().set("k", &quota).unwrap();
    let sent = tokio::time::timeout(Duration::from_secs(3_600), &mut waiting).await;
    sent.expect("the gate opens").unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn gate_waits_for_every_scope_of_layer() {
    let limiter = super::builder();
    let limiter = limiter.quota("k", Quota::new().rpm(9)).quota("team", Quota::new().rpm(1));
    let limiter = limiter.build().unwrap();
    let layers = [tokens(&limiter).key("k").scope("team"), tokens(&limiter).scope("team")];
    layers[0].layer(echo()).oneshot(1).await.unwrap();
    for layer in layers {
        let mut service = layer.layer(echo());
        assert!(!is_ready(&mut service).await, "{layer:?}");
        assert_eq!(available(&limiter, "team"), [0]);
    }
    let begin = limiter.now();
    let mut service = tokens(&limiter).key("k").scope("team").layer(echo());
    service.ready().await.unwrap();
    assert_eq!(limiter.now() - begin, 60 * S);
    assert_eq!((available(&limiter, "k"), available(&limiter, "team")), (vec![9], vec![1]));
}
