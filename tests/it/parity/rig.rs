//! Limiters without a margin, on clocks that the tests move, and what they say.

use std::time::Duration;
use tollgate::Timestamp;
use tollgate::limiter::{
    AcquireError, Builder, Limiter, ManualClock, Permit, Reduction, TokioClock,
};
use tollgate::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, Window};

/// Seconds, in nanoseconds.
pub(super) const S: Duration = Duration::from_secs(1);

pub(super) fn builder() -> Builder {
    Limiter::builder().margin(Margin::NONE).reduction(Reduction::OFF)
}

/// One key `k` with this quota, counted as it says or in sliding windows, and a clock that is moved
/// by hand.
pub(super) fn manual(quota: Quota) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    (builder().quota("k", quota).clock(clock.clone()).build().unwrap(), clock)
}

/// The same on tokio's paused clock.
pub(super) fn paused(quota: Quota) -> Limiter {
    builder().quota("k", quota).clock(TokioClock::new()).build().unwrap()
}

/// The quota in token buckets.
pub(super) fn buckets(quota: Quota) -> Quota {
    quota.with_algorithm(Algorithm::TokenBucket)
}

pub(super) fn limit(dimension: Dimension, amount: u64, window: Duration) -> Limit {
    Limit::new(dimension, amount, Window::new(window).unwrap()).unwrap()
}

pub(super) fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

/// What counts against each limit of a key, in their order.
pub(super) fn used(limiter: &Limiter, key: &str) -> Vec<u64> {
    limiter.stats(key).limits.iter().map(|limit| limit.used).collect()
}

/// What requests in flight hold of each limit of a key, in their order.
pub(super) fn held(limiter: &Limiter, key: &str) -> Vec<u64> {
    limiter.stats(key).limits.iter().map(|limit| limit.held).collect()
}

/// How many of `tries` requests are let in now, each dropped at once.
pub(super) fn admitted(limiter: &Limiter, key: &str, cost: &Cost, tries: usize) -> usize {
    (0..tries).filter(|_| limiter.try_acquire(key, cost).is_ok()).count()
}

/// Seconds since `begin`, rounded down.
pub(super) fn seconds(limiter: &Limiter, begin: Timestamp) -> u64 {
    (limiter.now() - begin).as_secs()
}

/// A task that waits for a reservation, keeps the charge and says how it ended.
pub(super) fn waiter(
    limiter: &Limiter,
    key: &str,
    cost: &Cost,
) -> tokio::task::JoinHandle<Result<Permit, AcquireError>> {
    let mut acquire = limiter.acquire(key, cost);
    assert!(acquire.arrive().is_none(), "it should have to wait");
    tokio::spawn(acquire)
}

/// Lets every task that is ready run.
pub(super) async fn settle_down() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
