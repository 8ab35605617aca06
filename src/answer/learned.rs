use serde::Serialize;

use crate::quota::Dimension;
use crate::timestamp::Timestamp;

/// A limit that the limiter has measured by a provider's answers, and holds requests to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LearnedLimit {
    /// The dimension that is limited.
    pub dimension: Dimension,
    /// Amount per second; for [`Dimension::Concurrency`], requests in flight.
    pub amount: f64,
    /// The configured amount per second.
    pub configured: Option<f64>,
    /// The time of the event that measured it.
    pub measured_at: Timestamp,
    /// The events that measured it: each one halves the error, down to some percent.
    pub events: u32,
}
