use std::collections::VecDeque;

use serde::Serialize;

use tollgate::Timestamp;
use tollgate::limiter::Totals;

/// What was answered in each of the last seconds, by what a limiter has answered in all.
#[derive(Debug)]
pub(super) struct History {
    /// When the limiter was last looked at.
    seen_at: Timestamp,
    seen: Totals,
    /// Oldest first; the last is of the second in which it was last looked at.
    seconds: VecDeque<Totals>,
}

/// The figures of a [`History`], oldest first; the last second isn't over yet.
#[derive(Debug, Default, Serialize)]
pub(super) struct Past {
    /// Seconds since the epoch of the last.
    second: u64,
    granted: Vec<u64>,
    denied: Vec<u64>,
    /// Of the granted, those that had to wait.
    waited: Vec<u64>,
}

impl History {
    pub(super) fn new(now: Timestamp, seen: Totals) -> Self {
        Self { seen_at: now, seen, seconds: [Totals::default()].into() }
    }

    /// Takes what was answered since the last look for that of the second of the last look. So it is
    /// exact if there is a look at the beginning of each second.
    pub(super) fn see(&mut self, now: Timestamp, totals: Totals) {
        let second = self.second();
        if let Some(last) = self.seconds.back_mut() {
            last.granted += totals.granted.saturating_sub(self.seen.granted);
            last.denied += totals.denied.saturating_sub(self.seen.denied);
            last.waited += totals.waited.saturating_sub(self.seen.waited);
        }
        // A clock that was set back goes on where it was.
        (self.seen, self.seen_at) = (totals, self.seen_at.max(now));
        let passed = usize::try_from(self.second() - second).unwrap_or(usize::MAX);
        for _ in 0..passed.min(SECONDS) {
            self.seconds.push_back(Totals::default());
        }
        let excess = self.seconds.len().saturating_sub(SECONDS);
        self.seconds.drain(..excess);
    }

    pub(super) fn past(&self) -> Past {
        let column = |of: fn(&Totals) -> u64| self.seconds.iter().map(of).collect();
        Past {
            second: self.second(),
            granted: column(|totals| totals.granted),
            denied: column(|totals| totals.denied),
            waited: column(|totals| totals.waited),
        }
    }

    fn second(&self) -> u64 {
        (self.seen_at - Timestamp::UNIX_EPOCH).as_secs()
    }
}

/// Five minutes.
const SECONDS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn totals(granted: u64, denied: u64, waited: u64) -> Totals {
        let mut totals = Totals::default();
        (totals.granted, totals.denied, totals.waited) = (granted, denied, waited);
        totals
    }

    #[test]
    fn answers_count_for_the_second_in_which_they_were_given() {
        let mut history = History::new(at(10 * SECOND), totals(100, 7, 0));
        history.see(at(10 * SECOND + SECOND / 2), totals(103, 7, 1));
        history.see(at(11 * SECOND), totals(104, 9, 1));
        history.see(at(13 * SECOND + 5), totals(110, 9, 1));
        let past = history.past();
        assert_eq!(past.second, 13);
        assert_eq!(past.granted, [4, 6, 0, 0]);
        assert_eq!((past.denied, past.waited), (vec![2, 0, 0, 0], vec![1, 0, 0, 0]));
    }

    #[test]
    fn five_minutes_are_kept_however_long_nobody_looked() {
        let mut history = History::new(at(0), Totals::default());
        history.see(at(SECOND), totals(5, 0, 0));
        history.see(at(300 * SECOND), totals(6, 0, 0));
        assert_eq!(history.past().granted[0], 1);
        history.see(at(u64::MAX), totals(6, 0, 0));
        assert_eq!(history.past().granted, [0; SECONDS]);
    }

    #[test]
    fn a_clock_that_was_set_back_loses_nothing() {
        let mut history = History::new(at(10 * SECOND), Totals::default());
        history.see(at(3 * SECOND), totals(2, 0, 0));
        history.see(at(10 * SECOND), totals(5, 0, 0));
        assert_eq!(history.past().granted, [5]);
    }
}
