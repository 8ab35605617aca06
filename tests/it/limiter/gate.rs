use std::future::poll_fn;
use std::time::Duration;

use tollgate::limiter::{Gate, Limiter};
use tollgate::quota::{Cost, Quota};

use super::{S, paused, settle_down, tokens};

async fn open(gate: &mut Gate, typical: &Cost) {
    poll_fn(|cx| gate.poll_open(typical, None, cx)).await;
}

/// A task that waits at a gate of its own, and says when it was let through.
fn waiting_at(limiter: &Limiter, typical: Cost) -> tokio::task::JoinHandle<u64> {
    let (limiter, mut gate) = (limiter.clone(), limiter.key("k").unwrap().gate());
    let begin = limiter.now();
    tokio::spawn(async move {
        open(&mut gate, &typical).await;
        (limiter.now() - begin).as_secs()
    })
}

#[tokio::test(start_paused = true)]
async fn a_gate_opens_when_a_typical_request_would_fit_and_takes_nothing() {
    let limiter = paused(Quota::new().rpm(600).tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let gates: Vec<_> = (0..5).map(|_| waiting_at(&limiter, tokens(10))).collect();
    for gate in gates {
        assert_eq!(gate.await.unwrap(), 10);
    }
    let stats = limiter.stats("k");
    assert_eq!((stats.limits[0].used, stats.limits[1].used), (0, 50));
}

#[tokio::test(start_paused = true)]
async fn a_gate_stays_shut_while_others_wait() {
    let limiter = paused(Quota::new().concurrency(1).rpm(600));
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let waiter = tokio::spawn(limiter.acquire("k", &Cost::new()));
    let gate = waiting_at(&limiter, Cost::new());
    tokio::time::sleep(Duration::from_secs(3)).await;
    drop(held);
    let second = waiter.await.unwrap().unwrap();
    settle_down().await;
    assert!(!gate.is_finished());
    drop(second);
    assert_eq!(gate.await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_gate_hands_on() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let first = waiting_at(&limiter, tokens(10));
    settle_down().await;
    let second = waiting_at(&limiter, tokens(10));
    settle_down().await;
    first.abort();
    assert_eq!(second.await.unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_typical_cost_above_the_limit_does_not_shut_the_gate_for_ever() {
    let limiter = paused(Quota::new().tpm(60));
    let mut gate = limiter.key("k").unwrap().gate();
    open(&mut gate, &tokens(1_000_000)).await;
}

#[tokio::test(start_paused = true)]
async fn a_gate_does_not_outwait_its_patience() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let mut gate = limiter.key("k").unwrap().gate();
    let begin = limiter.now();
    poll_fn(|cx| gate.poll_open(&tokens(30), Some(Duration::from_secs(29)), cx)).await;
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn patience_is_counted_from_the_first_poll() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let mut gate = limiter.key("k").unwrap().gate();
    let begin = limiter.now();
    let rival = limiter.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        rival.acquire("k", &tokens(10)).await.unwrap();
    });
    // It would have opened at 15 s; the rival moves that to 25 s, longer than it wants to wait.
    let patience = Some(Duration::from_secs(20));
    poll_fn(|cx| gate.poll_open(&tokens(15), patience, cx)).await;
    assert_eq!((limiter.now() - begin).as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_gate_with_patience_is_open_when_nobody_knows_how_long_it_takes() {
    let limiter = paused(Quota::new().concurrency(1));
    let _held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let mut gate = limiter.key("k").unwrap().gate();
    let begin = limiter.now();
    poll_fn(|cx| gate.poll_open(&Cost::new(), Some(Duration::ZERO), cx)).await;
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn patience_ends_behind_a_gate_that_has_more() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let first = waiting_at(&limiter, tokens(60));
    settle_down().await;
    let mut second = limiter.key("k").unwrap().gate();
    let begin = limiter.now();
    let patience = Some(Duration::from_secs(10));
    poll_fn(|cx| second.poll_open(&tokens(5), patience, cx)).await;
    assert_eq!((limiter.now() - begin).as_secs(), 10);
    assert_eq!(first.await.unwrap(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_nobody_polls_any_more_keeps_the_next_only_a_moment() {
    let limiter = paused(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let mut forgotten = limiter.key("k").unwrap().gate();
    poll_fn(|cx| {
        assert!(forgotten.poll_open(&Cost::new(), None, cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    let begin = limiter.now();
    let next = waiting_at(&limiter, Cost::new());
    next.await.unwrap();
    assert!((limiter.now() - begin) < 2 * S, "a grant a second is due");
    let again = waiting_at(&limiter, Cost::new());
    again.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_lost_its_place_gets_another_when_it_is_polled() {
    let limiter = paused(Quota::new().concurrency(1));
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let mut forgotten = limiter.key("k").unwrap().gate();
    poll_fn(|cx| {
        assert!(forgotten.poll_open(&Cost::new(), None, cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    let next = waiting_at(&limiter, Cost::new());
    settle_down().await;
    drop(held);
    next.await.unwrap();
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let behind = tokio::spawn(async move {
        poll_fn(|cx| forgotten.poll_open(&Cost::new(), None, cx)).await;
    });
    settle_down().await;
    drop(held);
    behind.await.unwrap();
}
