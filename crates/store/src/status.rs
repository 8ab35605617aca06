use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Latency, Measured, Measurement};

use crate::error::StoreError;

/// The state of a [`Persistence`](crate::Persistence).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStatus {
    /// The time of the last successful flush.
    pub kept_at: Option<Timestamp>,
    /// Successful flushes since the start.
    pub flushes: u64,
    /// Failed flushes since the start.
    pub failures: u64,
    /// The number of keys with changes that could not be written yet.
    pub pending_keys: usize,
    /// The error of the last flush, if it failed; the limiter continues in memory.
    pub trouble: Option<StoreError>,
    /// The durations of all flushes.
    pub latency: Latency,
}

impl StoreStatus {
    /// Returns the values for the metrics.
    pub(super) fn measurements(&self) -> Vec<Measurement> {
        let total = |name, value| Measurement::new(name, Measured::Total(value));
        let pending = u64::try_from(self.pending_keys).unwrap_or(u64::MAX);
        vec![
            Measurement::new("paceline_store_pending_keys", Measured::Amount(pending)),
            total("paceline_store_flushes_total", self.flushes),
            total("paceline_store_failures_total", self.failures),
            Measurement::new("paceline_store_flush_seconds", Measured::Latency(self.latency)),
        ]
    }

    /// Records the result of a flush, and logs changes.
    pub(super) fn record(
        &mut self,
        result: &Result<(), StoreError>,
        now: Timestamp,
        pending_keys: usize,
    ) {
        self.pending_keys = pending_keys;
        match result {
            Ok(()) => {
                self.kept_at = Some(now);
                self.flushes += 1;
                if let Some(resolved) = self.trouble.take() {
                    tracing::info!(file = %resolved.path.display(), "saving state works again");
                }
            }
            Err(error) => {
                self.failures += 1;
                self.record_trouble(error);
            }
        }
    }

    /// Records an error of the store, and logs it if it is new.
    pub(super) fn record_trouble(&mut self, error: &StoreError) {
        if self.trouble.as_ref().is_none_or(|known| known.reason != error.reason) {
            tracing::warn!(%error, "failed to save state; the limiter continues in memory");
        }
        self.trouble = Some(error.clone());
    }
}
