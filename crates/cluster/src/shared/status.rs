use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Latency, Measured, Measurement};

/// The connection state of a [`Shared`](super::Shared), and its counters since creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedStatus {
    /// True if the store is available.
    pub connected: bool,
    /// The start of the current outage; `None` while the store is available.
    pub away_since: Option<Timestamp>,
    /// The number of outages.
    pub outages: u64,
    /// Decisions made by the store.
    pub decided: u64,
    /// Requests admitted by leases, without a call to the store of their own.
    pub decided_by_lease: u64,
    /// Requests refused because the store was unavailable.
    pub degraded_closed: u64,
    /// Requests admitted because the store was unavailable.
    pub degraded_open: u64,
    /// Requests admitted by `open` beyond what the limits had left when the store returned: they were not
    /// charged, so that later requests don't wait for them. For each key, those of the limit that they
    /// exceed most.
    pub uncharged_requests: u64,
    /// The same for tokens.
    pub uncharged_tokens: u64,
    /// Requests decided by the local share because the store was unavailable.
    pub degraded_local: u64,
    /// Calls that were repeated.
    pub retries: u64,
    /// Calls to which the store did not respond in time.
    pub timeouts: u64,
    /// Ends of requests that the store has not acknowledged yet.
    pub unacknowledged: u64,
    /// Keys with usage of an outage that the store has not been charged yet.
    pub undelivered_keys: u64,
    /// Attempts to open a connection.
    pub connects: u64,
    /// The durations of calls to the store, timeouts included.
    pub latency: Latency,
    /// Live processes of the account when the store last responded, this one included.
    pub members: u64,
    /// Open reservations of this process.
    pub opened: u64,
}

impl SharedStatus {
    /// Returns the part of the decisions that leases made, from 0 to 1.
    pub fn lease_share(&self) -> f64 {
        let all = self.decided.saturating_add(self.decided_by_lease);
        if all == 0 { 0.0 } else { self.decided_by_lease as f64 / all as f64 }
    }

    /// Returns the values for the metrics.
    pub(super) fn measurements(&self) -> Vec<Measurement> {
        let total = |name, value| Measurement::new(name, Measured::Total(value));
        let amount = |name, value| Measurement::new(name, Measured::Amount(value));
        let latency = Measured::Latency(self.latency);
        vec![
            Measurement::new("paceline_cluster_connected", Measured::Flag(self.connected)),
            amount("paceline_cluster_members", self.members),
            amount("paceline_cluster_undelivered_keys", self.undelivered_keys),
            amount("paceline_cluster_unacknowledged", self.unacknowledged),
            total("paceline_cluster_decisions_total", self.decided).with_label("store"),
            total("paceline_cluster_decisions_total", self.decided_by_lease).with_label("lease"),
            total("paceline_cluster_degraded_total", self.degraded_closed).with_label("closed"),
            total("paceline_cluster_degraded_total", self.degraded_open).with_label("open"),
            total("paceline_cluster_degraded_total", self.degraded_local).with_label("local_share"),
            total("paceline_cluster_uncharged_total", self.uncharged_requests)
                .with_label("requests"),
            total("paceline_cluster_uncharged_total", self.uncharged_tokens).with_label("tokens"),
            total("paceline_cluster_outages_total", self.outages),
            total("paceline_cluster_timeouts_total", self.timeouts),
            total("paceline_cluster_retries_total", self.retries),
            total("paceline_cluster_connects_total", self.connects),
            Measurement::new("paceline_cluster_call_seconds", latency),
        ]
    }
}
