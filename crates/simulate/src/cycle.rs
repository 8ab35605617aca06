//! Times that repeat.

use std::time::Duration;

/// The times for which something is active and then idle, repeatedly, from the first request on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cycle {
    /// The time for which it is active.
    pub active: Duration,
    /// The time for which it is then idle.
    pub idle: Duration,
}

impl Cycle {
    /// Returns whether it is active at a time after the first request.
    pub(super) fn is_active(&self, elapsed: Duration) -> bool {
        let cycle = self.active.saturating_add(self.idle).as_nanos().max(1);
        elapsed.as_nanos() % cycle < self.active.as_nanos()
    }
}
