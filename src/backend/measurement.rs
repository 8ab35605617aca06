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
    /// The durations of all calls since the start.
    Latency(Latency),
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
