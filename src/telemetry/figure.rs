use ::metrics::Unit;

/// One line of the table: what is told under a name.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) labels: &'static [&'static str],
    pub(super) meaning: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

pub(super) const GRANTED: Figure = Figure {
    name: "tollgate_granted_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    meaning: "Reservations that were granted",
};

pub(super) const DENIED: Figure = Figure {
    name: "tollgate_denied_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key", "dimension"],
    meaning: "Reservations that were refused, by what fell short",
};

pub(super) const WAIT: Figure = Figure {
    name: "tollgate_wait_seconds",
    kind: Kind::Histogram,
    unit: Unit::Seconds,
    labels: &["key"],
    meaning: "How long those waited that had to, until they were granted",
};

pub(super) const SETTLED: Figure = Figure {
    name: "tollgate_settled_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    meaning: "Reservations that ended with a charge",
};

pub(super) const RELEASED: Figure = Figure {
    name: "tollgate_released_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    meaning: "Reservations that were given back: the request never left",
};

pub(super) const RESERVED_TOKENS: Figure = Figure {
    name: "tollgate_reserved_tokens_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key", "dimension"],
    meaning: "Tokens that had been reserved by what has ended with a charge",
};

pub(super) const CHARGED_TOKENS: Figure = Figure {
    name: "tollgate_charged_tokens_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key", "dimension"],
    meaning: "Tokens that it was charged",
};

pub(super) const ESTIMATE: Figure = Figure {
    name: "tollgate_estimate_ratio",
    kind: Kind::Histogram,
    unit: Unit::Count,
    labels: &["key"],
    meaning: "Reserved tokens over charged tokens of each request that was charged any: 1 is exact",
};

pub(super) const COOLING_DOWN: Figure = Figure {
    name: "tollgate_cooling_down_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    meaning: "Cool-downs after refusals by the provider (429, 503, 529), or as others tell of them",
};

pub(super) const REDUCED: Figure = Figure {
    name: "tollgate_reduced_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    meaning: "Reductions of a capacity, after refusals or because somebody said so",
};

pub(super) const RECOVERED: Figure = Figure {
    name: "tollgate_recovered_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &["key"],
    meaning: "Returns to the whole quota",
};

pub(super) const CAPACITY: Figure = Figure {
    name: "tollgate_capacity",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &["key", "dimension", "window_seconds"],
    meaning: "The amount of each limit now",
};

pub(super) const USED: Figure = Figure {
    name: "tollgate_used",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &["key", "dimension", "window_seconds"],
    meaning: "What counts against it now",
};

pub(super) const HELD: Figure = Figure {
    name: "tollgate_held",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &["key", "dimension", "window_seconds"],
    meaning: "What requests in flight hold of it; of `concurrency`, how many there are",
};

pub(super) const WAITING: Figure = Figure {
    name: "tollgate_waiting",
    kind: Kind::Gauge,
    unit: Unit::Count,
    labels: &["key"],
    meaning: "Requests in the queue",
};

pub(super) const STORE_FLUSHES: Figure = Figure {
    name: "tollgate_store_flushes_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    meaning: "Times that a store was written",
};

pub(super) const STORE_FAILURES: Figure = Figure {
    name: "tollgate_store_failures_total",
    kind: Kind::Counter,
    unit: Unit::Count,
    labels: &[],
    meaning: "Times that it could not be",
};

pub(super) const TOKEN_USAGE: Figure = Figure {
    name: "gen_ai.client.token.usage",
    kind: Kind::Histogram,
    unit: Unit::Count,
    labels: &[
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.token.type",
    ],
    meaning: "Tokens of each request, as its response reports them; `input` or `output`",
};

pub(super) const OPERATION_DURATION: Figure = Figure {
    name: "gen_ai.client.operation.duration",
    kind: Kind::Histogram,
    unit: Unit::Seconds,
    labels: &[
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "error.type",
    ],
    meaning: "From the call to the end of the response, the wait included",
};

/// The table.
pub(super) const ALL: &[&Figure] = &[
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
    &WAITING,
    &STORE_FLUSHES,
    &STORE_FAILURES,
    &TOKEN_USAGE,
    &OPERATION_DURATION,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of the table in the module's documentation.
    fn line(figure: &Figure) -> String {
        let Figure { name, kind, unit, labels, meaning } = figure;
        let kind = format!("{kind:?}").to_lowercase();
        let unit = match unit {
            Unit::Seconds => "seconds",
            _ => "",
        };
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        format!("//! | `{name}` | {kind} | {unit} | {} | {meaning} |", labels.join(", "))
    }

    #[test]
    fn the_documentation_has_one_line_for_each_figure_and_no_other() {
        let source = include_str!("mod.rs");
        let rows = |line: &&str| line.starts_with("//! | `");
        let documented: Vec<_> = source.lines().filter(rows).collect();
        let told: Vec<_> = ALL.iter().map(|figure| line(figure)).collect();
        assert_eq!(documented, told, "\n{}\n", told.join("\n"));
    }

    #[test]
    fn names_say_what_they_count_as_prometheus_has_it() {
        for figure in ALL.iter().filter(|figure| figure.name.starts_with("tollgate_")) {
            let total = figure.name.ends_with("_total");
            assert_eq!(total, figure.kind == Kind::Counter, "{}", figure.name);
            let seconds = figure.name.ends_with("_seconds");
            assert_eq!(seconds, figure.unit == Unit::Seconds, "{}", figure.name);
        }
    }
}
