//! Cooperation with the async runtime: yielding and paused time.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use paceline::Limiter;
use paceline::quota::{Cost, Quota};

use super::{builder, manual};

/// Returns a limiter of one request per minute on the default clock.
fn one_a_minute() -> Limiter {
    builder().quota("k", Quota::new().rpm(1)).build().unwrap()
}

/// Polls a future until it is ready and returns the number of polls.
///
/// # Panics
///
/// After more than 100 polls.
async fn polls(future: impl Future) -> usize {
    let (mut future, mut polls) = (pin!(future), 0);
    std::future::poll_fn(|cx| {
        polls += 1;
        assert!(polls <= 100, "the future spins");
        future.as_mut().poll(cx).map(drop)
    })
    .await;
    polls
}

#[tokio::test]
async fn acquire_granted_in_a_loop_yields_to_other_tasks() {
    let limiter = builder().quota("k", Quota::new().rpm(1_000_000)).build().unwrap();
    let ran = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&ran);
    tokio::spawn(async move { other.store(true, Ordering::Relaxed) });
    let mut granted = 0;
    while !ran.load(Ordering::Relaxed) {
        limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new());
        granted += 1;
        assert!(granted < 10_000, "acquire never yields");
    }
    assert!(granted > 0);
}

#[tokio::test]
async fn acquire_refused_in_a_loop_yields_to_other_tasks() {
    let limiter = builder().quota("k", Quota::new().tpm(1)).build().unwrap();
    let ran = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&ran);
    tokio::spawn(async move { other.store(true, Ordering::Relaxed) });
    let mut refused = 0;
    while !ran.load(Ordering::Relaxed) {
        limiter.acquire("k", &Cost::new().tokens(9)).max_wait(Duration::ZERO).await.unwrap_err();
        refused += 1;
        assert!(refused < 10_000, "acquire never yields");
    }
}

#[tokio::test]
async fn acquire_polled_without_budget_reserves_zero() {
    let (limiter, _clock) = manual(Quota::new().concurrency(1_000));
    let polled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&polled);
    let task = {
        let limiter = limiter.clone();
        std::future::poll_fn(move |cx| {
            let mut permits = Vec::new();
            loop {
                let mut acquire = pin!(limiter.acquire("k", &Cost::new()));
                match acquire.as_mut().poll(cx) {
                    Poll::Ready(permit) => permits.push(permit.unwrap()),
                    Poll::Pending => break,
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
            let stats = limiter.stats("k");
            let taken = 1_000 - stats.limits[0].available;
            assert_eq!((taken, stats.waiting), (permits.len() as u64, 0));
            Poll::Ready(())
        })
    };
    tokio::spawn(task).await.unwrap();
    let granted = polled.load(Ordering::Relaxed);
    assert!((1..1_000).contains(&granted), "{granted}");
    assert_eq!(limiter.stats("k").limits[0].available, 1_000);
}

#[test]
fn acquire_outside_a_runtime_needs_no_budget() {
    let (limiter, _clock) = manual(Quota::new().rpm(10_000));
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        let poll = pin!(limiter.acquire("k", &Cost::new())).poll(&mut cx);
        assert!(matches!(poll, Poll::Ready(Ok(_))));
    }
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the test measures paused time")]
async fn default_clock_in_paused_time_waits_without_spinning() {
    let limiter = one_a_minute();
    limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new());
    for _ in 0..3 {
        let (began, paused) = (limiter.now(), tokio::time::Instant::now());
        polls(async { limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new()) })
            .await;
        assert!(limiter.now() > began);
        assert!(paused.elapsed() > Duration::from_secs(30));
    }
}

#[tokio::test]
async fn default_clock_paused_later_waits_without_spinning() {
    let limiter = one_a_minute();
    limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(10)).await;
    polls(limiter.acquire("k", &Cost::new())).await;
    // A deadline also ends in paused time.
    let late = limiter.acquire("k", &Cost::new()).max_wait(Duration::from_millis(50));
    polls(async { assert!(late.await.is_err()) }).await;
    let cut = tokio::time::timeout(Duration::from_secs(5), limiter.acquire("k", &Cost::new()));
    polls(async { assert!(cut.await.is_err()) }).await;
}

/// Polls a future outside a runtime, and checks that it panics.
fn assert_panics_outside_runtime<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) {
    let poll = std::panic::AssertUnwindSafe(|| poll(&mut Context::from_waker(Waker::noop())));
    let panicked = std::panic::catch_unwind(poll).err().expect("a wait outside a runtime panics");
    let message = panicked.downcast_ref::<String>().map(String::as_str);
    let message = message.or(panicked.downcast_ref::<&str>().copied()).unwrap_or_default();
    assert!(message.contains("Tokio"), "{message}");
}

#[test]
fn waiting_outside_runtime_panics_and_leaves_no_waiter() {
    let limiter = one_a_minute();
    let cost = Cost::new();
    // Granted at once, which needs no runtime.
    let granted = pin!(limiter.acquire("k", &cost)).poll(&mut Context::from_waker(Waker::noop()));
    assert!(granted.is_ready());
    assert_panics_outside_runtime(|cx| Box::pin(limiter.acquire("k", &cost)).as_mut().poll(cx));
    let waits = limiter.wait_for_capacity("k", &cost);
    assert_panics_outside_runtime(|cx| Box::pin(waits).as_mut().poll(cx));
    let mut gate = limiter.key("k").unwrap().gate();
    assert_panics_outside_runtime(|cx| gate.poll_open(&cost, None, cx));
    drop(gate);
    assert_eq!(limiter.stats("k").waiting, 0);
    limiter.reset("k");
    assert!(limiter.try_acquire("k", &cost).is_ok());
}
