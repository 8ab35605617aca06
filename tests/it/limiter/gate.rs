use std::future::poll_fn;
use std::time::Duration;

use paceline::limiter::{Gate, Limiter};

use paceline::quota::{Cost, Quota, Usage};

use super::{S, paused, settle_down, tokens};

async fn open(gate: &mut Gate, typical: &Cost) {
    poll_fn(|cx| gate.poll_open(typical, None, cx)).await;
}

/// Spawns a task that waits for a new gate and returns the seconds until it opened.
fn spawn_gate(limiter: &Limiter, typical: Cost) -> tokio::task::JoinHandle<u64> {
    let (limiter, mut gate) = (limiter.clone(), limiter.key("k").unwrap().gate());
    let begin = limiter.now();
    tokio::spawn(async move {
        open(&mut gate, &typical).await;
        (limiter.now() - begin).as_secs()
    })
}

#[tokio::test(start_paused = true)]
async fn gate_opens_when_typical_cost_fits_and_reserves_zero() {
    let limiter = paused(Quota::new().rpm(600).tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let gates: Vec<_> = (0..5).map(|_| spawn_gate(&limiter, tokens(10))).collect();
    for gate in gates {
        assert_eq!(gate.await.unwrap(), 10);
    }
    let stats = limiter.stats("k");
    assert_eq!((stats.limits[0].used, stats.limits[1].used), (0, 50));
}

#[tokio::test(start_paused = true)]
async fn gate_stays_closed_while_requests_wait() {
    let limiter = paused(Quota::new().concurrency(1).rpm(600));
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let waiter = tokio::spawn(limiter.acquire("k", &Cost::new()));
    let gate = spawn_gate(&limiter, Cost::new());
    tokio::time::sleep(Duration::from_secs(3)).await;
    drop(held);
    let second = waiter.await.unwrap().unwrap();
    settle_down().await;
    assert!(!gate.is_finished());
    drop(second);
    assert_eq!(gate.await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn dropped_gate_passes_turn_to_next() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let first = spawn_gate(&limiter, tokens(10));
    settle_down().await;
    let second = spawn_gate(&limiter, tokens(10));
    settle_down().await;
    first.abort();
    assert_eq!(second.await.unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn gate_with_typical_cost_above_limit_opens() {
    let limiter = paused(Quota::new().tpm(60));
    let mut gate = limiter.key("k").unwrap().gate();
    open(&mut gate, &tokens(1_000_000)).await;
}

#[tokio::test(start_paused = true)]
async fn gate_with_expected_wait_above_max_opens_immediately() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let mut gate = limiter.key("k").unwrap().gate();
    let begin = limiter.now();
    poll_fn(|cx| gate.poll_open(&tokens(30), Some(Duration::from_secs(29)), cx)).await;
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn gate_max_wait_counts_from_first_poll() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let mut gate = limiter.key("k").unwrap().gate();
    let begin = limiter.now();
    let rival = limiter.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        rival.record("k", &Usage { input: 10, ..Usage::default() });
    });
    // Opens at 15 s; the rival's usage moves that to 25 s, beyond the max wait.
    let patience = Some(Duration::from_secs(20));
    poll_fn(|cx| gate.poll_open(&tokens(15), patience, cx)).await;
    assert_eq!((limiter.now() - begin).as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn gate_with_max_wait_and_unknown_wait_opens_immediately() {
    let limiter = paused(Quota::new().concurrency(1));
    let _held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let mut gate = limiter.key("k").unwrap().gate();
    let begin = limiter.now();
    poll_fn(|cx| gate.poll_open(&Cost::new(), Some(Duration::ZERO), cx)).await;
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn gate_max_wait_ends_behind_a_gate_with_longer_wait() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let first = spawn_gate(&limiter, tokens(60));
    settle_down().await;
    let mut second = limiter.key("k").unwrap().gate();
    let begin = limiter.now();
    let patience = Some(Duration::from_secs(10));
    poll_fn(|cx| second.poll_open(&tokens(5), patience, cx)).await;
    assert_eq!((limiter.now() - begin).as_secs(), 10);
    assert_eq!(first.await.unwrap(), 60);
}

#[tokio::test(start_paused = true)]
async fn gate_not_polled_delays_next_only_briefly() {
    let limiter = paused(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let mut unpolled = limiter.key("k").unwrap().gate();
    poll_fn(|cx| {
        assert!(unpolled.poll_open(&Cost::new(), None, cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    let begin = limiter.now();
    let next = spawn_gate(&limiter, Cost::new());
    next.await.unwrap();
    assert!((limiter.now() - begin) < 2 * S, "a grant a second is due");
    let again = spawn_gate(&limiter, Cost::new());
    again.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn gate_skipped_in_queue_requeues_when_polled() {
    let limiter = paused(Quota::new().concurrency(1));
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let mut unpolled = limiter.key("k").unwrap().gate();
    poll_fn(|cx| {
        assert!(unpolled.poll_open(&Cost::new(), None, cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    let next = spawn_gate(&limiter, Cost::new());
    settle_down().await;
    drop(held);
    next.await.unwrap();
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let behind = tokio::spawn(async move {
        poll_fn(|cx| unpolled.poll_open(&Cost::new(), None, cx)).await;
    });
    settle_down().await;
    drop(held);
    behind.await.unwrap();
}
