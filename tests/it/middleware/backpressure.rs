//! Backpressure: `poll_ready` is pending while as many requests of a layer wait as may.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Context;
use std::time::Duration;

use futures_util::future::join_all;
use paceline::Timestamp;
use paceline::limiter::{Clock, Sleep, TokioClock};
use paceline::quota::{Cost, Quota};
use tower::{Layer, Service, ServiceExt};

use super::inner::WakeCounter;
use super::{S, Tokens, builder, echo, held, is_ready, limiter, settle_down, tokens};

#[tokio::test(start_paused = true)]
async fn oneshots_of_layer_without_key_under_join_all_succeed() {
    for with_scope in [false, true] {
        let limiter = limiter(Quota::new().rpm(5_000));
        let layer = tokens(&limiter);
        let layer = if with_scope { layer.scope("unlimited") } else { layer };
        let service = layer.layer(echo());
        let sent = join_all((0..20_000).map(|_| service.clone().oneshot(1))).await;
        assert_eq!(sent.iter().filter(|response| response.is_err()).count(), 0);
        assert_eq!((held(&limiter, "k"), limiter.stats("k").waiting), (vec![0], 0));
    }
}

/// Returns a layer of one waiting request, whose key has a request in flight and one that waits.
async fn full_layer() -> (Tokens, impl FnOnce(), tokio::task::JoinHandle<()>) {
    let limiter = limiter(Quota::new().concurrency(1));
    let layer = tokens(&limiter).max_waiting(1);
    let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
    let mut service = layer.layer(echo());
    assert!(is_ready(&mut service).await);
    let waiting = tokio::spawn(async move {
        service.call(1).await.unwrap();
    });
    settle_down().await;
    assert_eq!(limiter.stats("k").waiting, 1);
    (layer, move || drop(permit), waiting)
}

#[tokio::test(start_paused = true)]
async fn poll_ready_is_pending_until_fewer_requests_wait() {
    let (layer, release, waiting) = full_layer().await;
    let mut service = layer.layer(echo());
    assert!(!is_ready(&mut service).await);
    assert!(!is_ready(&mut service.clone()).await);
    assert!(is_ready(&mut layer.clone().max_wait(60 * S).layer(echo())).await);
    release();
    waiting.await.unwrap();
    service.ready().await.unwrap().call(1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_wakes_pending_service() {
    let (layer, release, waiting) = full_layer().await;
    let mut service = layer.layer(echo());
    assert!(!is_ready(&mut service).await);
    waiting.abort();
    service.ready().await.unwrap();
    release();
}

#[tokio::test(start_paused = true)]
async fn pending_service_dropped_after_wake_wakes_next() {
    let (layer, release, waiting) = full_layer().await;
    let counters = [Arc::<WakeCounter>::default(), Arc::default()];
    let mut services = counters.each_ref().map(|counter| {
        let mut service = layer.layer(echo());
        assert!(service.poll_ready(&mut Context::from_waker(&counter.waker())).is_pending());
        Some(service)
    });
    release();
    waiting.await.unwrap();
    assert_eq!([counters[0].count(), counters[1].count()], [1, 0]);
    services[0] = None;
    assert_eq!(counters[1].count(), 1);
    services[1].as_mut().unwrap().ready().await.unwrap().call(1).await.unwrap();
}

/// Returns a clock of tokio's time, and its time.
fn started() -> (TokioClock, paceline::Timestamp) {
    let clock = TokioClock::new();
    let now = clock.now();
    (clock, now)
}

#[tokio::test(start_paused = true)]
async fn forgotten_service_keeps_no_slot() {
    let (layer, release, waiting) = full_layer().await;
    let mut forgotten = layer.layer(echo());
    assert!(!is_ready(&mut forgotten).await);
    let mut service = layer.layer(echo());
    let called = tokio::spawn(async move { service.ready().await.unwrap().call(1).await });
    settle_down().await;
    release();
    waiting.await.unwrap();
    let (clock, begin) = started();
    called.await.unwrap().unwrap();
    assert!(clock.now() - begin <= S, "{:?}", clock.now() - begin);
    forgotten.ready().await.unwrap().call(1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_keeps_its_slot_for_a_second_at_most() {
    let limiter = limiter(Quota::new().concurrency(1));
    let layer = tokens(&limiter).max_waiting(1);
    let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
    let mut service = layer.layer(echo());
    assert!(is_ready(&mut service).await);
    let mut forgotten = service.call(1);
    assert!(futures_util::poll!(&mut forgotten).is_pending());
    let (clock, begin) = started();
    let mut other = layer.layer(echo());
    let called = other.ready().await.unwrap().call(1);
    assert!(clock.now() - begin <= S, "{:?}", clock.now() - begin);
    // Another one may wait, and passes the forgotten one.
    drop(permit);
    called.await.unwrap();
    forgotten.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn request_that_waits_long_keeps_its_slot() {
    let (layer, release, waiting) = full_layer().await;
    let mut service = layer.layer(echo());
    let ready = tokio::time::timeout(60 * S, service.ready()).await;
    assert!(ready.is_err(), "one request waits");
    release();
    waiting.await.unwrap();
    service.ready().await.unwrap().call(1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn request_keeps_its_slot_while_the_runtime_stands_still() {
    let (layer, release, waiting) = full_layer().await;
    let mut service = layer.layer(echo());
    // Wakes the request, which isn't polled before the runtime stands still.
    assert!(!is_ready(&mut service).await);
    tokio::time::advance(Duration::from_millis(400)).await;
    settle_down().await;
    assert!(!is_ready(&mut service).await);
    release();
    waiting.await.unwrap();
    service.ready().await.unwrap().call(1).await.unwrap();
}

/// A clock that is set by hand, and wakes nobody.
#[derive(Debug, Clone)]
struct SettableClock(Arc<AtomicU64>);

impl Clock for SettableClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, _: Timestamp) -> Sleep {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn forgotten_slot_is_free_after_the_clock_was_set_back() {
    let millis = |millis: u64| 1_000_000_000_000 + millis * 1_000_000;
    let clock = SettableClock(Arc::new(AtomicU64::new(millis(3_600_000))));
    let limiter = builder().quota("k", Quota::new().concurrency(1)).clock(clock.clone());
    let limiter = limiter.build().unwrap();
    let layer = tokens(&limiter).max_waiting(1);
    let _permit = limiter.acquire("k", &Cost::new()).await.unwrap();
    let mut service = layer.layer(echo());
    assert!(is_ready(&mut service).await);
    let mut forgotten = service.call(1);
    assert!(futures_util::poll!(&mut forgotten).is_pending());
    let mut other = layer.layer(echo());
    assert!(!is_ready(&mut other).await);
    for now in (0..10).map(|step| millis(step * 100)) {
        clock.0.store(now, Ordering::Relaxed);
        if is_ready(&mut other).await {
            return;
        }
    }
    panic!("the forgotten request keeps its slot");
}
