use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) outages: Count,
    pub(super) decided: Count,
    pub(super) closed: Count,
    pub(super) open: Count,
    pub(super) local: Count,
    pub(super) retries: Count,
    pub(super) timeouts: Count,
    /// The current number, not a total.
    pub(super) unacknowledged: Count,
    pub(super) members: Count,
}

/// An atomic counter.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn sub(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    pub(super) fn set(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// Returns the number of decisions made without the store.
    pub(super) fn degraded(&self) -> u64 {
        self.closed.now() + self.open.now() + self.local.now()
    }
}
