//! The sliding window algorithm, as a log of all use in the last window.

use std::collections::VecDeque;

use super::meter::Meter;

/// A window that never allows more than its amount in any period of its length: use at `s` counts
/// while `now - s < window`.
#[derive(Debug)]
pub(super) struct SlidingLog {
    amount: u64,
    window: u64,
    used: u64,
    /// Times and amounts of use, oldest first.
    entries: VecDeque<(u64, u64)>,
}

impl SlidingLog {
    pub(super) fn new(amount: u64, window: u64) -> Self {
        Self { amount, window, used: 0, entries: VecDeque::new() }
    }

    fn expire(&mut self, now: u64) {
        while let Some(&(at, n)) = self.entries.front()
            && now - at >= self.window
        {
            self.used = self.used.saturating_sub(n);
            self.entries.pop_front();
        }
    }
}

impl Meter for SlidingLog {
    fn wait(&mut self, now: u64, n: u64) -> Option<u64> {
        self.expire(now);
        let headroom = self.amount.checked_sub(n)?;
        let mut left = self.used;
        let mut wait = 0;
        let mut oldest = self.entries.iter();
        while left > headroom {
            let (at, freed) = oldest.next().expect("the entries add up to the used amount");
            left -= freed;
            wait = self.window - (now - at);
        }
        Some(wait)
    }

    fn take(&mut self, now: u64, n: u64) {
        self.expire(now);
        if n > 0 {
            self.used = self.used.saturating_add(n);
            self.entries.push_back((now, n));
        }
    }

    fn remaining(&mut self, now: u64) -> u64 {
        self.expire(now);
        self.amount.saturating_sub(self.used)
    }

    fn time_until_full(&mut self, now: u64) -> u64 {
        self.expire(now);
        self.entries.back().map_or(0, |(at, _)| self.window - (now - at))
    }

    fn set_amount(&mut self, _now: u64, amount: u64, _capacity: u64) {
        self.amount = amount;
    }
}
