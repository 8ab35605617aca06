//! The use of the same limits by others.

use std::time::Duration;

use super::cycle::Cycle;

/// Another program on the account, which takes its part of every limit in even steps, even if the
/// limit is exhausted. Requests in flight are not affected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OtherUse {
    /// The part of the limits that it takes: above 0, below 1.
    pub share: f64,
    /// The times for which it is active; always if `None`.
    pub cycle: Option<Cycle>,
}

/// The progress of others on one limit.
#[derive(Debug)]
pub(super) struct OtherProgress {
    other_use: OtherUse,
    /// The part of a unit that is due but not yet taken.
    due: f64,
}

impl OtherProgress {
    pub(super) fn new(other_use: OtherUse) -> Self {
        Self { other_use, due: 0.0 }
    }

    /// Returns the units to take for one step that ends at a time after the first request, from a
    /// limit of `per_step` units in that step.
    pub(super) fn step(&mut self, elapsed: Duration, per_step: f64) -> u64 {
        if self.other_use.cycle.is_none_or(|cycle| cycle.is_active(elapsed)) {
            self.due += self.other_use.share * per_step;
        }
        let units = self.due.floor();
        self.due -= units;
        units as u64
    }
}
