use std::collections::VecDeque;
use std::time::Duration;

use super::units::seconds_between;
use crate::timestamp::Timestamp;

/// The sums of what was accepted at times of the last minute in which requests were sent.
#[derive(Debug, Default)]
pub(super) struct Lately {
    sums: VecDeque<(Timestamp, f64)>,
    last: Timestamp,
}

impl Lately {
    /// Notes the sum before a request that is sent now. Times without requests, other than pauses, don't count.
    pub(super) fn sent(&mut self, accepted: f64, now: Timestamp) {
        let since = now.saturating_duration_since(self.last);
        self.last = self.last.max(now);
        if since > LONGEST_PAUSE {
            for (at, _) in &mut self.sums {
                *at = at.saturating_add(since - LONGEST_PAUSE);
            }
        }
        if self.sums.back().is_some_and(|(at, _)| seconds_between(*at, now) < STEP) {
            return;
        }
        self.sums.push_back((now, accepted));
        while self.sums.get(1).is_some_and(|(at, _)| seconds_between(*at, now) >= MINUTE) {
            self.sums.pop_front();
        }
    }

    /// Returns the amount that was accepted per second of the minute, of this sum now. A part of a minute counts as
    /// a whole one: it says little about the rate where the bucket was full at its beginning.
    pub(super) fn per_second(&self, accepted: f64, now: Timestamp) -> f64 {
        let Some((at, sum)) = self.sums.front() else { return 0.0 };
        (accepted - sum).max(0.0) / seconds_between(*at, now).max(MINUTE)
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.last = self.last.saturating_sub(back);
        for (at, _) in &mut self.sums {
            *at = at.saturating_sub(back);
        }
    }
}

/// Seconds between two sums, and those of all.
const STEP: f64 = 5.0;
const MINUTE: f64 = 60.0;

/// A pause that isn't counted as idle.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
