//! Limits that change while the provider runs.

use std::time::Duration;

/// A change of every limit at a time after the first request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitChange {
    /// The time since the first request of any model.
    pub at: Duration,
    /// The factor of the original limits from then on, above 0. A limit stays at least 1.
    pub factor: f64,
}

impl LimitChange {
    /// Returns the changed amount.
    pub(super) fn applied_to(self, amount: u64) -> u64 {
        ((amount as f64 * self.factor).round() as u64).max(1)
    }
}
