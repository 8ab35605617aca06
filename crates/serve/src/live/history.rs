use std::collections::VecDeque;

use serde::Serialize;

use paceline::Timestamp;
use paceline::limiter::Totals;

/// The decisions in each of the last seconds, computed from the totals of a limiter.
#[derive(Debug)]
pub(super) struct History {
    /// The time of the last observation.
    observed_at: Timestamp,
    observed: Totals,
    /// Oldest first; the last second is that of the last observation.
    seconds: VecDeque<Totals>,
}

/// The values of a [`History`], oldest first; the last second is incomplete.
#[derive(Debug, Default, Serialize)]
pub(super) struct HistorySeries {
    /// The last second, in seconds since the Unix epoch.
    second: u64,
    granted: Vec<u64>,
    denied: Vec<u64>,
    /// The granted requests that waited.
    waited: Vec<u64>,
}

impl History {
    pub(super) fn new(now: Timestamp, observed: Totals) -> Self {
        Self { observed_at: now, observed, seconds: [Totals::default()].into() }
    }

    /// Attributes the decisions since the last observation to the second of that observation. This is
    /// exact if there is an observation at the start of each second.
    pub(super) fn record(&mut self, now: Timestamp, totals: Totals) {
        let second = self.second();
        if let Some(last) = self.seconds.back_mut() {
            last.granted += totals.granted.saturating_sub(self.observed.granted);
            last.denied += totals.denied.saturating_sub(self.observed.denied);
            last.waited += totals.waited.saturating_sub(self.observed.waited);
        }
        // Ignore a clock that was set back.
        (self.observed, self.observed_at) = (totals, self.observed_at.max(now));
        let passed = usize::try_from(self.second() - second).unwrap_or(usize::MAX);
        for _ in 0..passed.min(SECONDS) {
            self.seconds.push_back(Totals::default());
        }
        let excess = self.seconds.len().saturating_sub(SECONDS);
        self.seconds.drain(..excess);
    }

    pub(super) fn series(&self) -> HistorySeries {
        let column = |of: fn(&Totals) -> u64| self.seconds.iter().map(of).collect();
        HistorySeries {
            second: self.second(),
            granted: column(|totals| totals.granted),
            denied: column(|totals| totals.denied),
            waited: column(|totals| totals.waited),
        }
    }

    fn second(&self) -> u64 {
        (self.observed_at - Timestamp::UNIX_EPOCH).as_secs()
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
    fn decisions_count_in_second_of_decision() {
        let mut history = History::new(at(10 * SECOND), totals(100, 7, 0));
        history.record(at(10 * SECOND + SECOND / 2), totals(103, 7, 1));
        history.record(at(11 * SECOND), totals(104, 9, 1));
        history.record(at(13 * SECOND + 5), totals(110, 9, 1));
        let series = history.series();
        assert_eq!(series.second, 13);
        assert_eq!(series.granted, [4, 6, 0, 0]);
        assert_eq!((series.denied, series.waited), (vec![2, 0, 0, 0], vec![1, 0, 0, 0]));
    }

    #[test]
    fn history_keeps_five_minutes_after_a_long_gap() {
        let mut history = History::new(at(0), Totals::default());
        history.record(at(SECOND), totals(5, 0, 0));
        history.record(at(300 * SECOND), totals(6, 0, 0));
        assert_eq!(history.series().granted[0], 1);
        history.record(at(u64::MAX), totals(6, 0, 0));
        assert_eq!(history.series().granted, [0; SECONDS]);
    }

    #[test]
    fn history_survives_clock_set_back() {
        let mut history = History::new(at(10 * SECOND), Totals::default());
        history.record(at(3 * SECOND), totals(2, 0, 0));
        history.record(at(10 * SECOND), totals(5, 0, 0));
        assert_eq!(history.series().granted, [5]);
    }
}
