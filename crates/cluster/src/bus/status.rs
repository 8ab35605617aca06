use std::collections::BTreeMap;

use paceline_limiter::limiter::{Ignored, Latency, Measured, Measurement};

/// The connection state of a [`Bus`](super::Bus) and its message counters since creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusStatus {
    /// True if the bus is connected.
    pub connected: bool,
    /// Messages sent: acknowledged by Redis, or accepted by the connection to NATS.
    pub published: u64,
    /// Messages that could not be sent in time.
    pub failed: u64,
    /// Messages dropped because the queue was full.
    pub dropped: u64,
    /// Messages received, the publisher's own included.
    pub received: u64,
    /// Messages in the queue.
    pub queued: u64,
    /// The number of outages.
    pub outages: u64,
    /// Failed attempts to connect.
    pub retries: u64,
    /// Messages to which the server did not respond in time.
    pub timeouts: u64,
    /// The durations of sending a message, failures included.
    pub latency: Latency,
}

impl BusStatus {
    /// Returns the values for the metrics.
    pub(super) fn measurements(&self) -> Vec<Measurement> {
        let total = |name, value| Measurement::new(name, Measured::Total(value));
        let amount = |name, value| Measurement::new(name, Measured::Amount(value));
        vec![
            Measurement::new("paceline_bus_connected", Measured::Flag(self.connected)),
            amount("paceline_bus_queued", self.queued),
            total("paceline_bus_published_total", self.published),
            total("paceline_bus_failed_total", self.failed),
            total("paceline_bus_dropped_total", self.dropped),
            total("paceline_bus_received_total", self.received),
            total("paceline_bus_outages_total", self.outages),
            total("paceline_bus_retries_total", self.retries),
            total("paceline_bus_timeouts_total", self.timeouts),
            Measurement::new("paceline_bus_publish_seconds", Measured::Latency(self.latency)),
        ]
    }
}

/// Counters of an [`Agent`](super::Agent) since it joined its bus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentStatus {
    /// Status of the bus, over all of its users.
    pub bus: BusStatus,
    /// Messages that this agent published.
    pub announced: u64,
    /// Messages of other agents that were applied.
    pub applied: u64,
    /// Messages that could not be parsed.
    pub malformed: u64,
    /// Messages that were not applied, the agent's own included, by reason.
    pub ignored: BTreeMap<Ignored, u64>,
}
