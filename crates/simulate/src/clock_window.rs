//! The fixed window algorithm, aligned to the clock.

use super::meter::Meter;

/// A window that starts at every multiple of its length since the Unix epoch.
#[derive(Debug)]
pub(super) struct ClockWindow {
    amount: u64,
    window: u64,
    used: u64,
    /// The start of the window in which `used` counts.
    started_at: u64,
}

impl ClockWindow {
    pub(super) fn new(amount: u64, window: u64) -> Self {
        Self { amount, window, used: 0, started_at: 0 }
    }

    fn roll_over(&mut self, now: u64) {
        let started_at = now - now % self.window;
        if started_at > self.started_at {
            self.started_at = started_at;
            self.used = 0;
        }
    }

    fn left(&self, now: u64) -> u64 {
        self.window - (now - self.started_at)
    }
}

impl Meter for ClockWindow {
    fn wait(&mut self, now: u64, n: u64) -> Option<u64> {
        let headroom = self.amount.checked_sub(n)?;
        self.roll_over(now);
        Some(if self.used <= headroom { 0 } else { self.left(now) })
    }

    fn take(&mut self, now: u64, n: u64) {
        self.roll_over(now);
        self.used = self.used.saturating_add(n);
    }

    fn remaining(&mut self, now: u64) -> u64 {
        self.roll_over(now);
        self.amount.saturating_sub(self.used)
    }

    fn time_until_full(&mut self, now: u64) -> u64 {
        self.roll_over(now);
        if self.used == 0 { 0 } else { self.left(now) }
    }

    fn set_amount(&mut self, _now: u64, amount: u64, _capacity: u64) {
        self.amount = amount;
    }
}
