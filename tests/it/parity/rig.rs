//! Limiters without a margin on test clocks, and functions that read their stats.

use paceline::Timestamp;
use paceline::limiter::{
    AcquireError, Builder, Limiter, ManualClock, Permit, Reduction, TokioClock,
};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, Window};
use std::time::Duration;

/// One second in nanoseconds.
pub(super) const S: Duration = Duration::from_secs(1);

pub(super) fn builder() -> Builder {
    Limiter::builder().margin(Margin::NONE).reduction(Reduction::OFF)
}

/// Returns a limiter with one key `k` and this quota, in sliding windows unless the quota states an
/// algorithm, and its manual clock.
pub(super) fn manual(quota: Quota) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    (builder().quota("k", quota).clock(clock.clone()).build().unwrap(), clock)
}

/// Like [`manual`], on tokio's paused clock.
pub(super) fn paused(quota: Quota) -> Limiter {
    builder().quota("k", quota).clock(TokioClock::new()).build().unwrap()
}

/// Returns the quota in token buckets.
pub(super) fn buckets(quota: Quota) -> Quota {
    quota.with_algorithm(Algorithm::TokenBucket)
}

pub(super) fn limit(dimension: Dimension, amount: u64, window: Duration) -> Limit {
    Limit::new(dimension, amount, Window::new(window).unwrap()).unwrap()
}

pub(super) fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

/// Returns the used amount of each limit of a key.
pub(super) fn used(limiter: &Limiter, key: &str) -> Vec<u64> {
    limiter.stats(key).limits.iter().map(|limit| limit.used).collect()
}

/// Returns the held amount of each limit of a key.
pub(super) fn held(limiter: &Limiter, key: &str) -> Vec<u64> {
    limiter.stats(key).limits.iter().map(|limit| limit.held).collect()
}

/// Returns the number of `tries` requests that are admitted now; each permit is dropped immediately.
pub(super) fn admitted(limiter: &Limiter, key: &str, cost: &Cost, tries: usize) -> usize {
    (0..tries).filter(|_| limiter.try_acquire(key, cost).is_ok()).count()
}

/// Returns the seconds since `begin`, rounded down.
pub(super) fn seconds(limiter: &Limiter, begin: Timestamp) -> u64 {
    (limiter.now() - begin).as_secs()
}

/// Spawns a task that waits for a reservation and returns the permit or the error.
pub(super) fn waiter(
    limiter: &Limiter,
    key: &str,
    cost: &Cost,
) -> tokio::task::JoinHandle<Result<Permit, AcquireError>> {
    let mut acquire = limiter.acquire(key, cost);
    assert!(acquire.arrive().is_none(), "the request must wait");
    tokio::spawn(acquire)
}

/// Lets every ready task run.
pub(super) async fn settle_down() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
