//! Waiting for capacity.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use paceline::limiter::{AcquireError, Code};
use paceline::quota::{Cost, Quota};

use super::rig::{buckets, manual, paused, seconds, settle_down, tokens, used};

/// Counts wake-ups.
#[derive(Default)]
struct WakeCounter(AtomicUsize);

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn g05_wait_for_capacity_ends_with_capacity_unreserved() {
    let limiter = paused(buckets(Quota::new().rpm(60).tpm(60)));
    let begin = limiter.now();
    limiter.wait_for_capacity("k", &tokens(60)).await.unwrap();
    assert_eq!((seconds(&limiter, begin), used(&limiter, "k")), (0, vec![0, 0]));
    limiter.acquire("k", &tokens(60)).await.unwrap().settle(&tokens(60));
    limiter.wait_for_capacity("k", &tokens(25)).await.unwrap();
    assert_eq!((seconds(&limiter, begin), used(&limiter, "k")[1]), (25, 35));
    // `acquire` waits and reserves in one step.
    limiter.acquire("k", &tokens(30)).await.unwrap().settle(&tokens(30));
    assert_eq!((seconds(&limiter, begin), used(&limiter, "k")[1]), (30, 60));
}

#[test]
fn g05_acquire_is_woken_once_at_exact_nanosecond() {
    let (limiter, clock) = manual(Quota::new().rpd(1));
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    let count = Arc::new(WakeCounter::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    let mut acquire = pin!(limiter.acquire("k", &Cost::new()));
    assert!(acquire.as_mut().poll(&mut cx).is_pending());
    for _ in 0..24 {
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        clock.advance(Duration::from_secs(3_600) - Duration::from_nanos(1));
    }
    clock.advance(Duration::from_nanos(23));
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert!(matches!(acquire.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
}

#[test]
fn g05_wait_for_capacity_is_woken_once() {
    let (limiter, clock) = manual(Quota::new().rpm(1));
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    let count = Arc::new(WakeCounter::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    let mut capacity = pin!(limiter.wait_for_capacity("k", &Cost::new()));
    assert!(capacity.as_mut().poll(&mut cx).is_pending());
    for _ in 0..59 {
        clock.advance(Duration::from_secs(1));
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }
    clock.advance(Duration::from_secs(1));
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert_eq!(capacity.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
}

#[tokio::test(start_paused = true)]
async fn g05_unreachable_deadline_is_refused_immediately() {
    let limiter = paused(buckets(Quota::new().tpm(60)));
    drop(limiter.acquire("k", &tokens(60)).await.unwrap());
    let begin = limiter.now();
    let wait = Duration::from_millis(29_999);
    let acquired = limiter.acquire("k", &tokens(30)).max_wait(wait).await.map(drop);
    let waited = limiter.wait_for_capacity("k", &tokens(30)).max_wait(wait).await;
    for late in [acquired, waited] {
        let Err(AcquireError::DeadlineExceeded { refused, .. }) = late else { panic!("{late:?}") };
        assert_eq!(refused.code, Code::TpmExceeded);
        assert_eq!(refused.retry_after(), Some(Duration::from_secs(30)));
    }
    assert_eq!(limiter.now(), begin);
    let wait = Duration::from_secs(30);
    limiter.wait_for_capacity("k", &tokens(30)).max_wait(wait).await.unwrap();
    limiter.acquire("k", &tokens(30)).max_wait(wait).await.unwrap();
    assert_eq!(seconds(&limiter, begin), 30);
}

#[tokio::test(start_paused = true)]
async fn g05_cancelled_wait_leaves_no_trace() {
    let limiter = paused(Quota::new().rpm(1));
    drop(limiter.acquire("k", &Cost::new()).await.unwrap());
    let before = limiter.stats("k");
    let waiting = [
        tokio::spawn(limiter.wait_for_capacity("k", &Cost::new())),
        tokio::spawn({
            let acquire = limiter.acquire("k", &Cost::new());
            async { acquire.await.map(drop) }
        }),
    ];
    settle_down().await;
    assert_eq!(limiter.stats("k").waiting, 1);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    settle_down().await;
    assert_eq!(limiter.stats("k"), before);
}
