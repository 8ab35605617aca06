//! The values that a limiter returns: decisions, refusals, errors and statistics of keys.

pub(crate) mod code;
pub(crate) mod decision;
pub(crate) mod error;
pub(crate) mod learned;
pub(crate) mod stats;
pub(crate) mod utilization;
