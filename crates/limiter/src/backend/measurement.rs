use super::latency::Latency;

/// A value that a component of a limiter reports to the metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Measurement {
    /// The name of the metric.
    pub name: &'static str,
    /// The value of the metric's label; empty if it has none.
    pub label: &'static str,
    /// The value.
    pub value: Measured,
}

/// The value of a [`Measurement`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "the values of one scrape are few and short-lived")]
pub enum Measured {
    /// A total since the start.
    Total(u64),
    /// A current amount.
    Amount(u64),
    /// Whether something holds: for several components, whether it holds for all of them.
    Flag(bool),
    /// The durations of all calls since the start.
    Latency(Latency),
}

impl Measured {
    /// Returns the value of two components together; this one if the values are of different kinds.
    pub(crate) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Total(a), Self::Total(b)) => Self::Total(a.saturating_add(b)),
            (Self::Amount(a), Self::Amount(b)) => Self::Amount(a.saturating_add(b)),
            (Self::Flag(a), Self::Flag(b)) => Self::Flag(a && b),
            (Self::Latency(a), Self::Latency(b)) => Self::Latency(a.with(&b)),
            (value, _) => value,
        }
    }
}

impl Measurement {
    /// Creates a measurement of a metric without labels.
    pub fn new(name: &'static str, value: Measured) -> Self {
        Self { name, label: "", value }
    }

    /// Returns this measurement with a value of the metric's label.
    #[must_use]
    pub fn with_label(self, label: &'static str) -> Self {
        Self { label, ..self }
    }
}
