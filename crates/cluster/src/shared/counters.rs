use std::sync::atomic::{AtomicU64, Ordering};

use paceline_limiter::seam::LatencyRecorder;

/// Counters since the start.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) outages: Count,
    /// Decisions of the store, and of leases.
    pub(super) decided: Count,
    pub(super) leased: Count,
    pub(super) closed: Count,
    pub(super) open: Count,
    pub(super) local: Count,
    pub(super) uncharged_requests: Count,
    pub(super) uncharged_tokens: Count,
    pub(super) retries: Count,
    pub(super) timeouts: Count,
    /// The current number, not a total.
    pub(super) unacknowledged: Count,
    pub(super) members: Count,
    /// The number of members before this one.
    pub(super) rank: Count,
    /// Attempts to open a connection.
    pub(super) connects: Count,
    /// The durations of calls to the store, up to their response or failure.
    pub(super) latency: LatencyRecorder,
}

/// An atomic counter.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(super) fn sub(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// Returns the number of decisions made without the store.
    pub(super) fn degraded(&self) -> u64 {
        self.closed.get() + self.open.get() + self.local.get()
    }
}
