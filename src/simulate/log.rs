//! The sliding window: a log of everything taken in the last window.

use std::collections::VecDeque;

use super::meter::Meter;

/// Never more than the amount in any window: what was taken at `s` counts while
/// `now < s + window`.
#[derive(Debug)]
pub(super) struct SlidingLog {
    amount: u64,
    window: u64,
    used: u64,
    /// When, and how much; oldest first.
    taken: VecDeque<(u64, u64)>,
}

impl SlidingLog {
    pub(super) fn new(amount: u64, window: u64) -> Self {
        Self { amount, window, used: 0, taken: VecDeque::new() }
    }

    fn expire(&mut self, now: u64) {
        while let Some(&(at, n)) = self.taken.front()
            && at.saturating_add(self.window) <= now
        {
            self.used -= n;
            self.taken.pop_front();
        }
    }
}

impl Meter for SlidingLog {
    fn wait(&mut self, now: u64, n: u64) -> Option<u64> {
        self.expire(now);
        let mut left = self.used;
        let mut until = now;
        let mut oldest = self.taken.iter();
        let room = self.amount.checked_sub(n)?;
        while left > room {
            let (at, freed) = oldest.next().expect("the log adds up to what is used");
            left -= freed;
            until = at.saturating_add(self.window);
        }
        Some(until - now)
    }

    fn take(&mut self, now: u64, n: u64) {
        self.expire(now);
        if n > 0 {
            self.used += n;
            self.taken.push_back((now, n));
        }
    }

    fn remaining(&mut self, now: u64) -> u64 {
        self.expire(now);
        self.amount - self.used
    }

    fn full_in(&mut self, now: u64) -> u64 {
        self.expire(now);
        self.taken.back().map_or(0, |(at, _)| at.saturating_add(self.window) - now)
    }
}
