use alloc::sync::Arc;

use super::Wait;
use crate::quota::Grid;
use crate::timestamp::Timestamp;

/// Windows with boundaries that are known in advance: those of a clock or a calendar, or one without an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) limit: u64,
    pub(super) grid: Arc<Grid>,
    /// The time before and after a boundary in which no request is admitted, so that each arrives in the
    /// window in which it was sent. Every window is longer than twice this margin.
    pub(super) margin: u64,
}

/// Held amounts count in every window, since the provider may count a request in flight at a boundary on
/// either side. The actual amount counts when the request is settled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The time at which an amount was last taken. `used` belongs to the window around it.
    at: Timestamp,
    used: u64,
    held: u64,
    /// The time and the amount of the last usage in windows before that one.
    before: (Timestamp, u64),
}

impl State {
    pub(super) fn check(&self, spec: &Spec, cost: u64, now: Timestamp) -> Result<(), Wait> {
        if cost > spec.limit {
            return Err(Wait::Never);
        }
        if spec.grid.is_endless() {
            return self.check_total(spec.limit - cost);
        }
        let Some(unused) = (spec.limit - cost).checked_sub(self.held) else {
            return Err(Wait::Unknown);
        };
        let full = self.used(spec, now) > unused;
        // Usage with a time after now counts until the end of its own window.
        let window = spec.grid.around(if full { now.max(self.at) } else { now });
        let opens = window.start.add_nanos(spec.margin);
        if full || now >= window.end.sub_nanos(spec.margin) {
            return Err(Wait::At(window.end.add_nanos(spec.margin)));
        }
        if now < opens { Err(Wait::At(opens)) } else { Ok(()) }
    }

    /// Checks that at most `unused` was taken or is held, of a window without an end.
    fn check_total(&self, unused: u64) -> Result<(), Wait> {
        match unused.checked_sub(self.used) {
            None => Err(Wait::Never),
            Some(left) if self.held > left => Err(Wait::Unknown),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn take(&mut self, spec: &Spec, amount: u64, now: Timestamp) {
        self.turn(spec, now);
        self.used = self.used.saturating_add(amount);
        self.at = self.at.max(now);
    }

    /// Begins a window if the latest usage is of an earlier one.
    fn turn(&mut self, spec: &Spec, now: Timestamp) {
        if self.at < spec.grid.around(now).start {
            self.before = (self.at, self.used);
            self.used = 0;
        }
    }

    /// Returns the usage of the window before and of the latest one, each at its latest time.
    pub(super) fn usage(&self) -> [(Timestamp, u64); 2] {
        [self.before, (self.at, self.used)]
    }

    /// Corrects the amount of a request of the latest window. A request of an earlier window is ignored.
    pub(super) fn correct(&mut self, spec: &Spec, sent: Timestamp, taken: u64, actual: u64) {
        if sent >= spec.grid.around(self.at).start {
            self.turn(spec, sent);
            self.used = self.used.saturating_sub(taken).saturating_add(actual);
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

    /// Returns the time at which an amount was last taken.
    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the boundary at which the usage is zero.
    pub(super) fn fresh_at(&self, spec: &Spec) -> Timestamp {
        if self.used > 0 { spec.grid.around(self.at).end } else { Timestamp::UNIX_EPOCH }
    }

    pub(super) fn rebase(&mut self, back: u64) {
        self.at = self.at.sub_nanos(back);
        self.before.0 = self.before.0.sub_nanos(back);
    }
}
