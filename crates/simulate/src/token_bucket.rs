//! The token bucket algorithm, refilled continuously without rounding errors.

use super::meter::Meter;

/// A bucket that starts full. The level is in units of `1 / window`, so that each nanosecond adds
/// exactly `amount`.
#[derive(Debug)]
pub(super) struct TokenBucket {
    amount: i128,
    window: i128,
    capacity: i128,
    /// Negative when in debt.
    level: i128,
    at: u64,
}

impl TokenBucket {
    pub(super) fn new(amount: u64, window: u64, capacity: u64) -> Self {
        let (amount, window) = (i128::from(amount), i128::from(window));
        let capacity = i128::from(capacity) * window;
        Self { amount, window, capacity, level: capacity, at: 0 }
    }

    fn refill(&mut self, now: u64) {
        let refilled = i128::from(now.saturating_sub(self.at)).saturating_mul(self.amount);
        self.level = self.level.saturating_add(refilled).min(self.capacity);
        self.at = self.at.max(now);
    }

    /// Returns the nanoseconds, rounded up, in which the missing units refill.
    fn time_for(&self, missing: i128) -> u64 {
        let missing = u128::try_from(missing).unwrap_or(0);
        u64::try_from(missing.div_ceil(self.amount.unsigned_abs())).unwrap_or(u64::MAX)
    }
}

impl Meter for TokenBucket {
    fn wait(&mut self, now: u64, n: u64) -> Option<u64> {
        self.refill(now);
        let needed = i128::from(n) * self.window;
        (needed <= self.capacity).then(|| self.time_for(needed.saturating_sub(self.level)))
    }

    fn take(&mut self, now: u64, n: u64) {
        self.refill(now);
        self.level = self.level.saturating_sub(i128::from(n) * self.window);
    }

    fn remaining(&mut self, now: u64) -> u64 {
        self.refill(now);
        u64::try_from(self.level.max(0) / self.window).unwrap_or(u64::MAX)
    }

    fn time_until_full(&mut self, now: u64) -> u64 {
        self.refill(now);
        self.time_for(self.capacity - self.level)
    }

    fn set_amount(&mut self, now: u64, amount: u64, capacity: u64) {
        self.refill(now);
        self.amount = i128::from(amount);
        self.capacity = i128::from(capacity) * self.window;
        self.level = self.level.min(self.capacity);
    }
}
