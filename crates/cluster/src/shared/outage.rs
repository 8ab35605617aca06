use std::sync::Arc;

use paceline_limiter::Timestamp;

use super::counters::Counters;
use super::failure::Failure;

/// A period in which the store is unavailable.
#[derive(Debug, Clone)]
pub(super) struct Outage {
    pub(super) since: Timestamp,
    /// The cause, and what to do about it.
    pub(super) cause: Arc<str>,
    /// True if the cause was found by a check of the connection, and was logged.
    pub(super) is_logged: bool,
    /// The totals at the start: decisions made without the store, repeated calls, attempts to connect.
    totals: [u64; 4],
}

impl Outage {
    pub(super) fn new(failure: &Failure, since: Timestamp, counters: &Counters) -> Self {
        let cause = failure.cause().to_string().into();
        Self { since, cause, is_logged: false, totals: totals(counters) }
    }

    /// Returns the decisions made without the store, the repeated calls, the attempts to connect and the
    /// requests that were not charged, since the start.
    pub(super) fn changes(&self, counters: &Counters) -> [u64; 4] {
        let now = totals(counters);
        [0, 1, 2, 3].map(|total| now[total].saturating_sub(self.totals[total]))
    }
}

fn totals(counters: &Counters) -> [u64; 4] {
    [
        counters.degraded(),
        counters.retries.get(),
        counters.connects.get(),
        counters.uncharged_requests.get(),
    ]
}
