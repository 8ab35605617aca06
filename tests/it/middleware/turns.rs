//! The place of a service's gate among the requests that wait: it opens when its turn comes, whatever
//! others do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use paceline::limiter::Limiter;
use paceline::quota::{Algorithm, Cost, Quota};
use tower::{Layer, Service, ServiceExt};

use super::inner::Strict;
use super::{S, Tokens, echo, is_ready, limiter, settle_down, tokens};

/// A quota of 20 requests a second, without a burst.
pub(super) fn twenty_a_second() -> Quota {
    let requests = paceline::quota::Limit::per_second(paceline::quota::Dimension::Requests, 20);
    Quota::new().limit(requests.unwrap().with_burst(1)).with_algorithm(Algorithm::TokenBucket)
}

/// Spawns tasks that acquire without a pause. Returns the number of their permits.
pub(super) fn greedy(
    limiter: &Limiter,
    keys: &'static [&'static str],
    tasks: usize,
) -> Arc<AtomicU64> {
    let granted = Arc::new(AtomicU64::new(0));
    for _ in 0..tasks {
        let (limiter, granted) = (limiter.clone(), Arc::clone(&granted));
        tokio::spawn(async move {
            loop {
                limiter.acquire_all(keys, &Cost::new()).await.unwrap().settle(&Cost::new());
                granted.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    granted
}

/// Uses a part of the quota.
pub(super) async fn use_up(limiter: &Limiter, cost: &Cost) {
    limiter.acquire("k", cost).await.unwrap().settle(cost);
}

/// Returns the time that a service of this layer takes to be ready.
async fn ready_after(limiter: &Limiter, layer: &Tokens) -> Duration {
    let begin = limiter.now();
    layer.layer(echo()).ready().await.unwrap();
    limiter.now() - begin
}

#[tokio::test(start_paused = true)]
async fn gate_beside_two_greedy_tasks_opens_in_turn() {
    let limiter = limiter(twenty_a_second());
    greedy(&limiter, &["k"], 2);
    tokio::time::sleep(10 * S).await;
    let layer = tokens(&limiter).key("k");
    let begin = limiter.now();
    limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new());
    let of_request = limiter.now() - begin;
    for _ in 0..100 {
        assert!(ready_after(&limiter, &layer).await <= of_request + Duration::from_millis(50));
    }
}

#[tokio::test(start_paused = true)]
async fn gate_opens_beside_requests_of_other_models() {
    let limiter = super::builder().quota("account", twenty_a_second());
    let limiter = limiter.quota("*", Quota::new().rpm(100_000)).build().unwrap();
    greedy(&limiter, &["one", "account"], 2);
    greedy(&limiter, &["two", "account"], 2);
    tokio::time::sleep(10 * S).await;
    for layer in [tokens(&limiter).key("k").scope("account"), tokens(&limiter).scope("account")] {
        assert!(ready_after(&limiter, &layer).await <= Duration::from_millis(300));
    }
    let begin = limiter.now();
    limiter.wait_for_capacity("account", &Cost::new()).await.unwrap();
    assert!(limiter.now() - begin <= Duration::from_millis(300));
}

#[tokio::test(start_paused = true)]
async fn two_layers_with_and_without_gate_share_limit() {
    let limiter = limiter(twenty_a_second());
    let layers = [tokens(&limiter), tokens(&limiter).key("k")];
    let sent = layers.map(|layer| {
        let sent = Arc::new(AtomicU64::new(0));
        for _ in 0..4 {
            let (mut service, sent) = (layer.layer(echo()), Arc::clone(&sent));
            tokio::spawn(async move {
                loop {
                    service.ready().await.unwrap().call(1).await.unwrap();
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        sent
    });
    tokio::time::sleep(600 * S).await;
    let [without, with] = sent.map(|sent| sent.load(Ordering::Relaxed));
    assert!(with.abs_diff(without) * 50 <= with + without, "{with} with a gate, {without} without");
    assert!(with + without >= 11_900, "{with} + {without}");
}

/// Returns services that have waited at their gates and are polled no more.
async fn forgotten(layer: &Tokens, services: usize) -> Vec<Limited> {
    let mut forgotten = Vec::new();
    for _ in 0..services {
        let mut service = layer.layer(echo());
        assert!(!is_ready(&mut service).await);
        forgotten.push(service);
    }
    forgotten
}

/// A rate limited service.
type Limited = <Tokens as Layer<Strict<u64, u64>>>::Service;

#[tokio::test(start_paused = true)]
async fn hundred_forgotten_gates_delay_request_and_gate_briefly() {
    for has_gate in [false, true] {
        let limiter = limiter(Quota::new().rpm(60));
        use_up(&limiter, &Cost::new().requests(60)).await;
        let gated = tokens(&limiter).key("k");
        let kept = forgotten(&gated, 100).await;
        let begin = limiter.now();
        let layer = if has_gate { gated } else { tokens(&limiter) };
        layer.layer(echo()).oneshot(1).await.unwrap();
        let waited = limiter.now() - begin;
        assert!(waited <= S + Duration::from_millis(300), "{waited:?}, has a gate: {has_gate}");
        drop(kept);
    }
}

/// Returns the part of the limit that requests use beside services that are polled and not called.
async fn utilization_beside_uncalled(a_second: u64, poll: Duration) -> f64 {
    let requests =
        paceline::quota::Limit::per_second(paceline::quota::Dimension::Requests, a_second);
    // Tokio's timers have a resolution of 1 ms.
    let quota = Quota::new().limit(requests.unwrap().with_burst(a_second / 20));
    let limiter = limiter(quota.with_algorithm(Algorithm::TokenBucket));
    let granted = greedy(&limiter, &["k"], 3);
    let layer = tokens(&limiter).key("k");
    settle_down().await;
    tokio::spawn(async move {
        let mut service = layer.layer(echo());
        loop {
            // Clones of a ready service aren't ready: each waits for a turn of its own.
            let _ = is_ready(&mut service).await;
            let mut clone = service.clone();
            let _ = is_ready(&mut clone).await;
            tokio::time::sleep(poll).await;
        }
    });
    let begin = granted.load(Ordering::Relaxed);
    tokio::time::sleep(20 * S).await;
    (granted.load(Ordering::Relaxed) - begin) as f64 / (20 * a_second) as f64
}

#[tokio::test(start_paused = true)]
async fn service_polled_without_call_leaves_limit_to_others() {
    for (a_second, poll) in [(20, 7), (20, 60), (2_000, 3), (2_000, 60)] {
        let used = utilization_beside_uncalled(a_second, Duration::from_millis(poll)).await;
        assert!(used >= 0.95, "{used} of {a_second} a second, polled every {poll} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn service_whose_key_comes_under_shared_glob_is_pushed_back() {
    let limiter = super::builder().quota("m-1", Quota::new().rpm(60)).build().unwrap();
    let mut service = tokens(&limiter).key("m-1").layer(echo());
    assert!(is_ready(&mut service).await);
    service.call(1).await.unwrap();
    limiter.quotas().remove("m-1");
    limiter.quotas().set("m-*", &Quota::new().rpm(1).shared()).unwrap();
    limiter.acquire("m-2", &Cost::new()).await.unwrap().settle(&Cost::new());
    assert!(!is_ready(&mut service).await);
    let begin = limiter.now();
    service.ready().await.unwrap();
    assert_eq!(limiter.now() - begin, 60 * S);
}

#[tokio::test(start_paused = true)]
async fn call_after_wait_at_gate_goes_before_later_requests() {
    let limiter = limiter(Quota::new().rpm(60));
    use_up(&limiter, &Cost::new().requests(60)).await;
    let mut service = tokens(&limiter).key("k").layer(echo());
    assert!(!is_ready(&mut service).await);
    let later = tokio::spawn(limiter.acquire("k", &Cost::new()));
    settle_down().await;
    service.ready().await.unwrap();
    settle_down().await;
    assert!(!later.is_finished(), "the gate's claim keeps its request free");
    let begin = limiter.now();
    service.call(1).await.unwrap();
    assert_eq!(limiter.now(), begin);
    later.await.unwrap().unwrap();
    assert_eq!(limiter.now() - begin, S);
}

#[tokio::test(start_paused = true)]
async fn call_long_after_gate_opened_waits_behind_others() {
    let limiter = limiter(Quota::new().rpm(60));
    use_up(&limiter, &Cost::new().requests(60)).await;
    let mut service = tokens(&limiter).key("k").layer(echo());
    service.ready().await.unwrap();
    greedy(&limiter, &["k"], 5);
    tokio::time::sleep(10 * S).await;
    let begin = limiter.now();
    service.call(1).await.unwrap();
    let waited = limiter.now() - begin;
    assert!(waited > 4 * S && waited <= 6 * S, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn call_that_costs_more_than_gate_expected_is_admitted() {
    let limiter = limiter(Quota::new().tpm(60));
    let mut service = tokens(&limiter).key("k").layer(echo());
    service.ready().await.unwrap().call(1).await.unwrap();
    use_up(&limiter, &Cost::new().tokens(59)).await;
    service.ready().await.unwrap();
    let begin = limiter.now();
    let sent = tokio::time::timeout(600 * S, service.call(30)).await;
    sent.expect("the request keeps its place after its gate has left").unwrap();
    assert!(limiter.now() - begin <= 30 * S);
}
