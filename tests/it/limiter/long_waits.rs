//! A wait above 30 s is logged once per key, until the key serves a request without one.

use paceline::limiter::{AcquireError, Limiter, Permit, RateLimited};
use paceline::{Cost, Quota};
use paceline_testing::log_buffer::LogBuffer;
use tokio::task::JoinHandle;
use tracing::subscriber::DefaultGuard;

use super::{S, manual, paused, settle_down};

/// Captures the log of this thread.
fn capture() -> (LogBuffer, DefaultGuard) {
    let log = LogBuffer::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    (log, tracing::subscriber::set_default(subscriber))
}

/// Returns the lines about long waits.
fn lines(log: &LogBuffer) -> Vec<String> {
    let text = log.text();
    let is_long = |line: &&str| line.contains("waits for longer than 30 s");
    text.lines().filter(is_long).map(str::to_owned).collect()
}

type Waiting = JoinHandle<Result<Permit, AcquireError>>;

async fn wait(limiter: &Limiter, requests: u64) -> Waiting {
    let waiting = tokio::spawn(limiter.acquire("k", &Cost::new().requests(requests)).into_future());
    settle_down().await;
    waiting
}

#[tokio::test(start_paused = true)]
async fn wait_known_to_be_long_is_logged_at_once() {
    let (log, _guard) = capture();
    let limiter = paused(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let _short = wait(&limiter, 30).await;
    assert_eq!(lines(&log), [""; 0], "30 s are not above 30 s");
    let _long = wait(&limiter, 31).await;
    let lines = lines(&log);
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in ["WARN", "key=\"k\"", "code=rpm_exceeded", "dimension=\"requests\"", "fits_in_s=31"]
    {
        assert!(lines[0].contains(part), "{part} is missing in {lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_wait_is_logged_after_30_s_have_passed() {
    let (log, _guard) = capture();
    let limiter = paused(Quota::new().concurrency(1));
    let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
    let waiting = [wait(&limiter, 1).await, wait(&limiter, 1).await];
    tokio::time::sleep(30 * S - S / 100).await;
    assert_eq!(lines(&log), [""; 0]);
    tokio::time::sleep(S / 50).await;
    assert_eq!(lines(&log).len(), 1);
    tokio::time::sleep(300 * S).await;
    assert_eq!(lines(&log).len(), 1, "logged once per key");
    drop(permit);
    for waiting in waiting {
        drop(waiting.await.unwrap().unwrap());
    }
    assert_eq!(lines(&log).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn long_waits_are_logged_once_until_a_request_is_served() {
    let (log, _guard) = capture();
    let limiter = paused(Quota::new().rpm(1));
    limiter.acquire("k", &Cost::new()).await.unwrap();
    for _ in 0..3 {
        // Clients that give up, and one that waits for its turn.
        wait(&limiter, 1).await.abort();
        settle_down().await;
    }
    wait(&limiter, 1).await.await.unwrap().unwrap();
    wait(&limiter, 1).await.abort();
    assert_eq!(lines(&log).len(), 1, "no request was served without a long wait");
    tokio::time::sleep(60 * S).await;
    limiter.acquire("k", &Cost::new()).await.unwrap();
    wait(&limiter, 1).await.abort();
    assert_eq!(lines(&log).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn request_served_without_waiting_in_any_way_ends_a_long_wait() {
    let (log, _guard) = capture();
    let limiter = paused(Quota::new().rpm(1));
    let handle = limiter.key("k").unwrap();
    let served: [Box<dyn Fn() -> Permit>; 3] = [
        Box::new(|| limiter.try_acquire("k", &Cost::new()).unwrap()),
        Box::new(|| handle.try_acquire(&Cost::new()).unwrap()),
        Box::new(|| limiter.acquire("k", &Cost::new()).try_now().unwrap()),
    ];
    for (logged, serve) in served.iter().enumerate() {
        drop(serve());
        wait(&limiter, 1).await.abort();
        assert_eq!(lines(&log).len(), logged + 1);
        tokio::time::sleep(60 * S).await;
    }
}

#[tokio::test(start_paused = true)]
async fn long_cool_down_is_logged_once_for_each_key() {
    let (log, _guard) = capture();
    let limiter = paused(Quota::new().rpm(1));
    for key in ["a", "b"] {
        limiter.feedback().rate_limited(key, &RateLimited::new(Some(90 * S)));
        for _ in 0..2 {
            let acquire = limiter.acquire(key, &Cost::new());
            drop(tokio::spawn(acquire.into_future()));
            settle_down().await;
        }
    }
    let lines = lines(&log);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("code=cooling_down")), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn wait_of_a_gate_is_logged_too() {
    let (log, _guard) = capture();
    let limiter = paused(Quota::new().concurrency(1));
    let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
    let capacity = tokio::spawn(limiter.wait_for_capacity("k", &Cost::new()));
    tokio::time::sleep(31 * S).await;
    assert_eq!(lines(&log).len(), 1);
    drop(permit);
    capacity.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn refused_and_short_waits_are_not_logged() {
    let (log, _guard) = capture();
    let limiter = paused(Quota::new().rpm(6));
    limiter.acquire("k", &Cost::new().requests(6)).await.unwrap();
    limiter.acquire("k", &Cost::new()).await.unwrap();
    limiter.acquire("k", &Cost::new().requests(6)).max_wait(10 * S).await.unwrap_err();
    limiter.try_acquire("k", &Cost::new().requests(6)).unwrap_err();
    assert_eq!(lines(&log), [""; 0]);
}

#[test]
fn key_with_a_logged_wait_is_dropped_when_idle() {
    let (_log, _guard) = capture();
    let (limiter, clock) = manual(Quota::new().rpm(1));
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    let mut waiting = Box::pin(limiter.acquire("k", &Cost::new()).into_future());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    drop(waiting);
    clock.advance(120 * S);
    assert_eq!(limiter.state().prune(), 1);
}

/// A key that no quota names may be a secret.
#[tokio::test(start_paused = true)]
async fn long_wait_of_unnamed_key_is_logged_by_its_quota() {
    let (log, _guard) = capture();
    let builder = super::builder().clock(paceline::limiter::TokioClock::new());
    let limiter = builder.quota("user:*", Quota::new().rpm(1)).build().unwrap();
    limiter.acquire("user:s3cret", &Cost::new()).await.unwrap();
    let _waiting = tokio::spawn(limiter.acquire("user:s3cret", &Cost::new()).into_future());
    settle_down().await;
    let lines = lines(&log);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("key=\"user:*\"") && !log.text().contains("s3cret"), "{lines:?}");
}
