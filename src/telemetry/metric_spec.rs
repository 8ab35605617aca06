use ::metrics::Unit;

/// The name, type and description of a metric.
#[derive(Debug)]
pub(super) struct MetricSpec {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) labels: &'static [&'static str],
    pub(super) description: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

pub(super) const GRANTED: MetricSpec = MetricSpec {
    name: "paceline_granted_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    description: "Reservations granted",
};

pub(super) const DENIED: MetricSpec = MetricSpec {
    name: "paceline_denied_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key", "dimension"],
    description: "Reservations denied, by the dimension that was exceeded",
};

pub(super) const WAIT: MetricSpec = MetricSpec {
    name: "paceline_wait_seconds",
    kind: Kind::Histogram,
    unit: Unit::Seconds,
    labels: &["key"],
    description: "Time that requests spent queued before admission, in seconds",
};

pub(super) const SETTLED: MetricSpec = MetricSpec {
    name: "paceline_settled_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    description: "Reservations settled with a charge",
};

pub(super) const RELEASED: MetricSpec = MetricSpec {
    name: "paceline_released_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    description: "Reservations released because the request was never sent",
};

pub(super) const RESERVED_TOKENS: MetricSpec = MetricSpec {
    name: "paceline_reserved_tokens_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key", "dimension"],
    description: "Tokens that settled reservations had reserved",
};

pub(super) const CHARGED_TOKENS: MetricSpec = MetricSpec {
    name: "paceline_charged_tokens_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key", "dimension"],
    description: "Tokens that settled reservations were charged",
};

pub(super) const ESTIMATE: MetricSpec = MetricSpec {
    name: "paceline_estimate_ratio",
    kind: Kind::Histogram,
    unit: Unit::Count,
    labels: &["key"],
    description: "Ratio of reserved to charged tokens per request; 1 is an exact estimate",
};

pub(super) const COOLING_DOWN: MetricSpec = MetricSpec {
    name: "paceline_cooling_down_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    description: "Cool-downs of a key after a refusal by the provider (429, 503, 529) or at the utilization that its quota allows, including those that others announced",
};

pub(super) const REDUCED: MetricSpec = MetricSpec {
    name: "paceline_reduced_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    description: "Reductions of a capacity, after a refusal or on request",
};

pub(super) const RECOVERED: MetricSpec = MetricSpec {
    name: "paceline_recovered_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    description: "Recoveries of a key to its full quota",
};

pub(super) const CAPACITY: MetricSpec = MetricSpec {
    name: "paceline_capacity",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &["key", "dimension", "window_seconds"],
    description: "Current amount of each limit of a label that one key has; dollars for `usd`",
};

pub(super) const USED: MetricSpec = MetricSpec {
    name: "paceline_used",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &["key", "dimension", "window_seconds"],
    description: "Current usage that counts against each limit of a label that one key has; dollars for `usd`",
};

pub(super) const HELD: MetricSpec = MetricSpec {
    name: "paceline_held",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &["key", "dimension", "window_seconds"],
    description: "Amount of each limit of a label that one key has that requests in flight hold; for `concurrency`, the requests in flight",
};

pub(super) const LEARNED: MetricSpec = MetricSpec {
    name: "paceline_learned_limit",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &["key", "dimension"],
    description: "Limits of a label that one key has, measured by the provider's answers, as an amount per second; for `concurrency`, requests in flight",
};

pub(super) const UTILIZATION: MetricSpec = MetricSpec {
    name: "paceline_utilization_ratio",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &["key", "window"],
    description: "Used part of the account's windows, as the provider states it for subscriptions; 1 is used up",
};

pub(super) const WAITING: MetricSpec = MetricSpec {
    name: "paceline_waiting",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &["key"],
    description: "Requests that wait in the queues of all keys of a label",
};

pub(super) const TOKEN_USAGE: MetricSpec = MetricSpec {
    name: "gen_ai.client.token.usage",
    kind: Kind::Histogram,
    unit: Unit::Count,
    labels: &[
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.token.type",
    ],
    description: "Tokens per request, as the response reports them, by type (`input` or `output`)",
};

pub(super) const OPERATION_DURATION: MetricSpec = MetricSpec {
    name: "gen_ai.client.operation.duration_seconds",
    kind: Kind::Histogram,
    unit: Unit::Seconds,
    labels: &[
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "error.type",
    ],
    description: "Time from the call to the end of the response, including the time in the queue, in seconds",
};
