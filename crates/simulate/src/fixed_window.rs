//! The fixed window algorithm, anchored at first use.

use super::meter::Meter;

/// A window that starts with the first use, and again with the next use after its end.
#[derive(Debug)]
pub(super) struct FixedWindow {
    amount: u64,
    window: u64,
    used: u64,
    /// The start of the current window, which counts while `now - started_at < window`.
    started_at: Option<u64>,
}

impl FixedWindow {
    pub(super) fn new(amount: u64, window: u64) -> Self {
        Self { amount, window, used: 0, started_at: None }
    }

    fn roll_over(&mut self, now: u64) {
        if self.started_at.is_some_and(|started_at| now - started_at >= self.window) {
            self.started_at = None;
            self.used = 0;
        }
    }
}

impl Meter for FixedWindow {
    fn wait(&mut self, now: u64, n: u64) -> Option<u64> {
        let headroom = self.amount.checked_sub(n)?;
        self.roll_over(now);
        if self.used <= headroom { Some(0) } else { Some(self.time_until_full(now)) }
    }

    fn take(&mut self, now: u64, n: u64) {
        self.roll_over(now);
        if n > 0 {
            self.used = self.used.saturating_add(n);
            self.started_at.get_or_insert(now);
        }
    }

    fn remaining(&mut self, now: u64) -> u64 {
        self.roll_over(now);
        self.amount.saturating_sub(self.used)
    }

    fn time_until_full(&mut self, now: u64) -> u64 {
        self.roll_over(now);
        self.started_at.map_or(0, |started_at| self.window - (now - started_at))
    }

    fn set_amount(&mut self, _now: u64, amount: u64, _capacity: u64) {
        self.amount = amount;
    }
}
