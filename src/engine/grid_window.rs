use alloc::sync::Arc;

use super::Wait;
use crate::quota::Grid;
use crate::timestamp::Timestamp;

/// Windows whose boundaries are known beforehand: of a clock, or of a calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) limit: u64,
    pub(super) grid: Arc<Grid>,
    /// Nothing is sent for so long before a boundary and after, so that nothing arrives in another
    /// window than it was sent in. Every window is longer than twice that.
    pub(super) margin: u64,
}

/// What is held counts in whichever window it is: a request in flight at a boundary may be counted
/// by the provider before it or after. What it took counts when it is settled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    /// When something was last taken; `used` is that of the window around it.
    at: Timestamp,
    used: u64,
    held: u64,
}

impl State {
    pub(super) fn check(&self, spec: &Spec, cost: u64, now: Timestamp) -> Result<(), Wait> {
        if cost > spec.limit {
            return Err(Wait::Never);
        }
        let Some(room) = (spec.limit - cost).checked_sub(self.held) else {
            return Err(Wait::Unknown);
        };
        let full = self.used(spec, now) > room;
        // What was taken later than now counts until the end of its own window.
        let window = spec.grid.around(if full { now.max(self.at) } else { now });
        let opens = window.start.add_nanos(spec.margin);
        if full || now >= window.end.sub_nanos(spec.margin) {
            return Err(Wait::At(window.end.add_nanos(spec.margin)));
        }
        if now < opens { Err(Wait::At(opens)) } else { Ok(()) }
    }

    pub(super) fn take(&mut self, spec: &Spec, amount: u64, now: Timestamp) {
        self.used = self.used(spec, now).saturating_add(amount);
        self.at = self.at.max(now);
    }

    /// Corrects a request of the latest window; one of an earlier window has no part in it any more.
    pub(super) fn correct(&mut self, spec: &Spec, sent: Timestamp, taken: u64, actual: u64) {
        if sent >= spec.grid.around(self.at).start {
            self.used = self.used(spec, sent).saturating_sub(taken).saturating_add(actual);
            self.at = self.at.max(sent);
        }
    }

    pub(super) fn hold(&mut self, amount: u64) {
        self.held = self.held.saturating_add(amount);
    }

    pub(super) fn drop_hold(&mut self, amount: u64) {
        self.held = self.held.saturating_sub(amount);
    }

    pub(super) fn held(&self) -> u64 {
        self.held
    }

    pub(super) fn used(&self, spec: &Spec, now: Timestamp) -> u64 {
        if self.at >= spec.grid.around(now).start { self.used } else { 0 }
    }

    /// When something was last taken.
    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// The boundary at which nothing is used any more.
    pub(super) fn fresh_at(&self, spec: &Spec) -> Timestamp {
        if self.used > 0 { spec.grid.around(self.at).end } else { Timestamp::UNIX_EPOCH }
    }

    pub(super) fn rebase(&mut self, back: u64) {
        self.at = self.at.sub_nanos(back);
    }
}
