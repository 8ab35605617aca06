use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;

use crate::latencies::Latencies;

/// The statistics of one connection or of all.
#[derive(Debug, Default)]
pub(super) struct LoadStats {
    /// The number of requests sent.
    pub(super) sent: u64,
    /// The number of complete responses by status.
    pub(super) statuses: BTreeMap<u16, u64>,
    /// The latencies of these responses.
    pub(super) latencies: Latencies,
    /// The number of broken connections and failed reconnects.
    pub(super) errors: u64,
    /// The first error.
    pub(super) first_error: Option<String>,
}

impl LoadStats {
    pub(super) fn answered(&mut self, status: StatusCode, latency: Duration) {
        *self.statuses.entry(status.as_u16()).or_default() += 1;
        self.latencies.record(latency);
    }

    pub(super) fn failed(&mut self, error: String) {
        self.errors += 1;
        self.first_error.get_or_insert(error);
    }

    /// Adds the statistics of another connection.
    pub(super) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.latencies.merge(&other.latencies);
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }
}
