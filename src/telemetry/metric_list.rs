use super::metric_spec::{
    CAPACITY, CHARGED_TOKENS, COOLING_DOWN, DENIED, ESTIMATE, GRANTED, HELD, LEARNED, MetricSpec,
    OPERATION_DURATION, RECOVERED, REDUCED, RELEASED, RESERVED_TOKENS, SETTLED, TOKEN_USAGE, USED,
    UTILIZATION, WAIT, WAITING,
};
use super::state_metrics::{
    BUS_CONNECTED, BUS_DROPPED, BUS_FAILED, BUS_OUTAGES, BUS_PUBLISH, BUS_PUBLISHED, BUS_QUEUED,
    BUS_RECEIVED, BUS_RETRIES, BUS_TIMEOUTS, CLUSTER_CALL, CLUSTER_CONNECTED, CLUSTER_CONNECTS,
    CLUSTER_DECISIONS, CLUSTER_DEGRADED, CLUSTER_MEMBERS, CLUSTER_OUTAGES, CLUSTER_RETRIES,
    CLUSTER_TIMEOUTS, CLUSTER_UNACKNOWLEDGED, CLUSTER_UNCHARGED, CLUSTER_UNDELIVERED,
    STORE_FAILURES, STORE_FLUSH, STORE_FLUSHES, STORE_PENDING,
};

/// All metrics.
pub(super) const ALL: &[&MetricSpec] = &[
    &GRANTED,
    &DENIED,
    &WAIT,
    &SETTLED,
    &RELEASED,
    &RESERVED_TOKENS,
    &CHARGED_TOKENS,
    &ESTIMATE,
    &COOLING_DOWN,
    &REDUCED,
    &RECOVERED,
    &CAPACITY,
    &USED,
    &HELD,
    &LEARNED,
    &UTILIZATION,
    &WAITING,
    &STORE_FLUSHES,
    &STORE_FAILURES,
    &STORE_PENDING,
    &STORE_FLUSH,
    &CLUSTER_CONNECTED,
    &CLUSTER_MEMBERS,
    &CLUSTER_UNDELIVERED,
    &CLUSTER_UNACKNOWLEDGED,
    &CLUSTER_DECISIONS,
    &CLUSTER_DEGRADED,
    &CLUSTER_UNCHARGED,
    &CLUSTER_OUTAGES,
    &CLUSTER_TIMEOUTS,
    &CLUSTER_RETRIES,
    &CLUSTER_CONNECTS,
    &CLUSTER_CALL,
    &BUS_CONNECTED,
    &BUS_QUEUED,
    &BUS_PUBLISHED,
    &BUS_FAILED,
    &BUS_DROPPED,
    &BUS_RECEIVED,
    &BUS_OUTAGES,
    &BUS_RETRIES,
    &BUS_TIMEOUTS,
    &BUS_PUBLISH,
    &TOKEN_USAGE,
    &OPERATION_DURATION,
];

#[cfg(test)]
mod tests {
    use ::metrics::Unit;

    use super::super::CALL_BUCKETS;
    use super::super::metric_spec::Kind;
    use super::*;
    use crate::limiter::Latency;

    /// Returns the row of a metric in the documentation of the module.
    fn row(metric: &MetricSpec) -> String {
        let MetricSpec { name, kind, unit, labels, description } = metric;
        let kind = format!("{kind:?}").to_lowercase();
        let unit = match unit {
            Unit::Seconds => "seconds",
            _ => "",
        };
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        format!("//! | `{name}` | {kind} | {unit} | {} | {description} |", labels.join(", "))
    }

    #[test]
    fn documentation_lists_exactly_all_metrics() {
        let source = include_str!("mod.rs");
        let rows = |line: &&str| line.starts_with("//! | `");
        let documented: Vec<_> = source.lines().filter(rows).collect();
        let expected: Vec<_> = ALL.iter().map(|metric| row(metric)).collect();
        assert_eq!(documented, expected, "\n{}\n", expected.join("\n"));
    }

    #[test]
    fn call_buckets_are_bounds_of_latencies() {
        let bounds = Latency::BOUNDS.map(|bound| bound.as_secs_f64());
        assert_eq!(bounds, CALL_BUCKETS);
    }

    #[test]
    fn metric_names_have_prometheus_suffixes() {
        for metric in ALL.iter().filter(|metric| metric.name.starts_with("paceline_")) {
            let total = metric.name.ends_with("_total");
            assert_eq!(total, metric.kind == Kind::Counter, "{}", metric.name);
            let seconds = metric.name.ends_with("_seconds");
            assert_eq!(seconds, metric.unit == Unit::Seconds, "{}", metric.name);
        }
    }
}
