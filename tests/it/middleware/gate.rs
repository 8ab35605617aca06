//! `poll_ready`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tollgate::Timestamp;

use tollgate::limiter::RateLimited;
use tollgate::quota::{Cost, Quota};
use tower::{Layer, Service, ServiceExt};

use super::inner::Bell;
use super::{S, available, echo, held, is_ready, limiter, settle_down, tokens};

#[tokio::test(start_paused = true)]
async fn clones_and_layers_are_one_limit() {
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
async fn ready_services_that_are_dropped_or_kept_take_nothing_and_hold_nobody_up() {
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
    // Nor do they once the gate has been shut and has opened again.
    layer.layer(echo()).oneshot(1).await.unwrap();
    assert_eq!(limiter.now() - begin, 60 * S);
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn ready_stays_ready_until_the_call() {
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
async fn an_open_gate_stays_open_while_the_inner_service_becomes_ready() {
    let limiter = limiter(Quota::new().rpm(1));
    let layer = tokens(&limiter).key("k");
    let busy = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&busy);
    let inner = echo().readying(move || match still.load(Ordering::Relaxed) {
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
async fn the_gate_opens_when_a_typical_request_fits_and_not_before() {
    let limiter = limiter(Quota::new().tpm(60));
    let mut service = tokens(&limiter).key("k").layer(echo());
    // The first request of all is what is typical so far: 30 tokens, at one a second.
    for expected in [0, 0, 30, 60] {
        service.ready().await.unwrap();
        assert_eq!((limiter.now() - Timestamp::UNIX_EPOCH).as_secs() % 100, expected);
        service.call(30).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_gate_is_shut_while_the_key_cools_down() {
    let limiter = limiter(Quota::new().rpm(600));
    let mut service = tokens(&limiter).key("k").layer(echo());
    let begin = limiter.now();
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(7))));
    service.ready().await.unwrap();
    assert_eq!(limiter.now() - begin, 7 * S);
}

#[tokio::test(start_paused = true)]
async fn a_woken_service_that_is_dropped_wakes_the_next() {
    let limiter = limiter(Quota::new().concurrency(1));
    let layer = tokens(&limiter).key("k");
    let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
    let mut services: Vec<_> = (0..3).map(|_| layer.layer(echo())).collect();
    let bells: Vec<Arc<Bell>> = (0..3).map(|_| Arc::default()).collect();
    for (service, bell) in services.iter_mut().zip(&bells) {
        assert!(service.poll_ready(&mut Context::from_waker(&bell.waker())).is_pending());
    }
    drop(permit);
    let rung = || bells.iter().map(|bell| bell.rung()).collect::<Vec<_>>();
    assert_eq!(rung(), [1, 0, 0]);
    drop(services.remove(0));
    assert_eq!(rung(), [1, 1, 0]);
    assert!(is_ready(&mut services[0]).await);
    assert_eq!(rung(), [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_at_the_gate_gets_through_in_the_end() {
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
async fn a_layer_without_a_key_is_always_open() {
    let limiter = limiter(Quota::new().rpm(1));
    let layer = tokens(&limiter);
    layer.layer(echo()).oneshot(1).await.unwrap();
    assert!(is_ready(&mut layer.layer(echo())).await);
}

#[tokio::test(start_paused = true)]
async fn a_reduction_below_the_typical_cost_does_not_close_the_gate_for_ever() {
    let limiter = limiter(Quota::new().tpm(600));
    let layer = tokens(&limiter).key("k");
    for _ in 0..3 {
        layer.layer(echo()).oneshot(100).await.unwrap();
    }
    // 100 are typical, and the limit no longer holds them: 60, of which none is left.
    let quota = Quota::new().tpm(60).with_algorithm(tollgate::quota::Algorithm::TokenBucket);
    limiter.quotas().set("k", &quota);
    let begin = limiter.now();
    let mut service = layer.layer(echo());
    assert!(!is_ready(&mut service).await);
    service.ready().await.unwrap();
    // It opens when all that the limit holds is there, and a request that fits is sent at once.
    let opened = limiter.now();
    assert_eq!(available(&limiter, "k"), [60]);
    assert!(opened > begin);
    service.call(60).await.unwrap();
    assert_eq!(limiter.now(), opened);
    // While the gate waits, too.
    limiter.quotas().set("k", &Quota::new().tpm(600));
    let mut waiting = tokio::spawn(layer.layer(echo()).oneshot(1));
    settle_down().await;
    limiter.quotas().set("k", &quota);
    let sent = tokio::time::timeout(Duration::from_secs(3_600), &mut waiting).await;
    sent.expect("the gate opens").unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_gate_waits_for_every_scope_of_the_layer() {
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
