//! The metrics of stores, shared limits and buses, which report their values by these names.

use ::metrics::Unit;

use super::metric_spec::{Kind, MetricSpec};

pub(super) const STORE_FLUSHES: MetricSpec = MetricSpec {
    name: "paceline_store_flushes_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Successful writes of a store",
};

pub(super) const STORE_FAILURES: MetricSpec = MetricSpec {
    name: "paceline_store_failures_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Failed writes of a store",
};

pub(super) const CLUSTER_CONNECTED: MetricSpec = MetricSpec {
    name: "paceline_cluster_connected",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &[],
    description: "1 while the shared store is reachable, else 0",
};

pub(super) const CLUSTER_MEMBERS: MetricSpec = MetricSpec {
    name: "paceline_cluster_members",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &[],
    description: "Live processes that share the limits, including this one",
};

pub(super) const CLUSTER_UNDELIVERED: MetricSpec = MetricSpec {
    name: "paceline_cluster_undelivered_keys",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &[],
    description: "Keys with usage of an outage that the shared store has not been charged yet",
};

pub(super) const CLUSTER_UNACKNOWLEDGED: MetricSpec = MetricSpec {
    name: "paceline_cluster_unacknowledged",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &[],
    description: "Ends of requests that the shared store has not acknowledged yet",
};

pub(super) const CLUSTER_DECISIONS: MetricSpec = MetricSpec {
    name: "paceline_cluster_decisions_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["by"],
    description: "Decisions of the shared store (`store`), and requests that leases admitted (`lease`)",
};

pub(super) const CLUSTER_DEGRADED: MetricSpec = MetricSpec {
    name: "paceline_cluster_degraded_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["policy"],
    description: "Decisions made without the shared store, by policy: `closed`, `open` or `local_share`",
};

pub(super) const CLUSTER_UNCHARGED: MetricSpec = MetricSpec {
    name: "paceline_cluster_uncharged_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["dimension"],
    description: "Requests and tokens (`requests`, `tokens`) that `open` admitted beyond the limits during outages, and never charged",
};

pub(super) const CLUSTER_OUTAGES: MetricSpec = MetricSpec {
    name: "paceline_cluster_outages_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Outages of the shared store",
};

pub(super) const CLUSTER_TIMEOUTS: MetricSpec = MetricSpec {
    name: "paceline_cluster_timeouts_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Calls to which the shared store did not respond in time",
};

pub(super) const CLUSTER_RETRIES: MetricSpec = MetricSpec {
    name: "paceline_cluster_retries_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Calls to the shared store that were repeated after a lost connection",
};

pub(super) const CLUSTER_CONNECTS: MetricSpec = MetricSpec {
    name: "paceline_cluster_connects_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Attempts to connect to the shared store",
};

pub(super) const CLUSTER_CALL: MetricSpec = MetricSpec {
    name: "paceline_cluster_call_seconds",
    kind: Kind::Histogram,
    unit: Unit::Seconds,
    labels: &[],
    description: "Duration of calls to the shared store, timeouts included, in seconds",
};

pub(super) const BUS_CONNECTED: MetricSpec = MetricSpec {
    name: "paceline_bus_connected",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &[],
    description: "1 while the bus is connected, else 0",
};

pub(super) const BUS_QUEUED: MetricSpec = MetricSpec {
    name: "paceline_bus_queued",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &[],
    description: "Messages that wait to be sent to the bus",
};

pub(super) const BUS_PUBLISHED: MetricSpec = MetricSpec {
    name: "paceline_bus_published_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Messages sent to the bus",
};

pub(super) const BUS_FAILED: MetricSpec = MetricSpec {
    name: "paceline_bus_failed_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Messages that could not be sent to the bus in time",
};

pub(super) const BUS_DROPPED: MetricSpec = MetricSpec {
    name: "paceline_bus_dropped_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Messages dropped because the queue to the bus was full",
};

pub(super) const BUS_RECEIVED: MetricSpec = MetricSpec {
    name: "paceline_bus_received_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Messages received from the bus, own ones included",
};

pub(super) const BUS_OUTAGES: MetricSpec = MetricSpec {
    name: "paceline_bus_outages_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Outages of the bus",
};

pub(super) const BUS_RETRIES: MetricSpec = MetricSpec {
    name: "paceline_bus_retries_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Failed attempts to connect to the bus",
};

pub(super) const BUS_TIMEOUTS: MetricSpec = MetricSpec {
    name: "paceline_bus_timeouts_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    description: "Messages to which the bus did not respond in time",
};

pub(super) const BUS_PUBLISH: MetricSpec = MetricSpec {
    name: "paceline_bus_publish_seconds",
    kind: Kind::Histogram,
    unit: Unit::Seconds,
    labels: &[],
    description: "Duration of sending a message to the bus, failures included, in seconds",
};

pub(super) const STORE_PENDING: MetricSpec = MetricSpec {
    name: "paceline_store_pending_keys",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &[],
    description: "Keys with changes that could not be written to a store yet",
};

pub(super) const STORE_FLUSH: MetricSpec = MetricSpec {
    name: "paceline_store_flush_seconds",
    kind: Kind::Histogram,
    unit: Unit::Seconds,
    labels: &[],
    description: "Duration of writes of a store, failures included, in seconds",
};
