use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;

use crate::latencies::Latencies;

/// What a connection, or all of them, have seen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Requests that were sent.
    pub(super) sent: u64,
    /// Answers that were read to their end, by status.
    pub(super) statuses: BTreeMap<u16, u64>,
    /// How long those took.
    pub(super) latencies: Latencies,
    /// Requests whose connection broke, and connections that couldn't be made again.
    pub(super) errors: u64,
    /// What the first of them says.
    pub(super) first_error: Option<String>,
}

impl Tally {
    pub(super) fn answered(&mut self, status: StatusCode, latency: Duration) {
        *self.statuses.entry(status.as_u16()).or_default() += 1;
        self.latencies.record(latency);
    }

    pub(super) fn failed(&mut self, error: String) {
        self.errors += 1;
        self.first_error.get_or_insert(error);
    }

    /// Adds what another connection has seen.
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
