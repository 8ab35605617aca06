//! The fixed window, anchored at first use.

use super::meter::Meter;

/// A window opens with the first use, lasts its length, and opens again with the next use
/// after it ended.
#[derive(Debug)]
pub(super) struct FixedWindow {
    amount: u64,
    window: u64,
    used: u64,
    /// When the open window began; it counts while `now - began < window`.
    began: Option<u64>,
}

impl FixedWindow {
    pub(super) fn new(amount: u64, window: u64) -> Self {
        Self { amount, window, used: 0, began: None }
    }

    fn close(&mut self, now: u64) {
        if self.began.is_some_and(|began| now - began >= self.window) {
            self.began = None;
            self.used = 0;
        }
    }
}

impl Meter for FixedWindow {
    fn wait(&mut self, now: u64, n: u64) -> Option<u64> {
        let room = self.amount.checked_sub(n)?;
        self.close(now);
        if self.used <= room { Some(0) } else { Some(self.full_in(now)) }
    }

    fn take(&mut self, now: u64, n: u64) {
        self.close(now);
        if n > 0 {
            self.used = self.used.saturating_add(n);
            self.began.get_or_insert(now);
        }
    }

    fn remaining(&mut self, now: u64) -> u64 {
        self.close(now);
        self.amount.saturating_sub(self.used)
    }

    fn full_in(&mut self, now: u64) -> u64 {
        self.close(now);
        self.began.map_or(0, |began| self.window - (now - began))
    }
}
