use paceline_limiter::limiter::LearnedLimit;
use paceline_limiter::quota::Dimension;
use serde::{Deserialize, Serialize};

use super::text::{self, Time};

/// A limit that a provider's answers have shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredLearned {
    #[serde(with = "text::dimension")]
    dimension: Dimension,
    /// Amount per second, or requests in flight.
    amount: f64,
    /// The amount per second that was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    configured: Option<f64>,
    pub(super) measured_at: Time,
    events: u32,
}

/// Amounts are compared, not ordered: one that isn't a number is written once more, and is never used.
impl Eq for StoredLearned {}

impl StoredLearned {
    pub(super) fn limit(&self) -> LearnedLimit {
        let Self { dimension, amount, configured, measured_at, events } = self;
        let mut limit = LearnedLimit::new(dimension.clone(), *amount, measured_at.0, *events);
        limit.configured = *configured;
        limit
    }
}

impl From<&LearnedLimit> for StoredLearned {
    fn from(limit: &LearnedLimit) -> Self {
        Self {
            dimension: limit.dimension.clone(),
            amount: limit.amount,
            configured: limit.configured,
            measured_at: Time(limit.measured_at),
            events: limit.events,
        }
    }
}
