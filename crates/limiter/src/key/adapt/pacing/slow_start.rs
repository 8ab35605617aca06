use std::time::Duration;

use super::column::ConfiguredRate;
use super::units::{FIRST_BURST, seconds_between, seconds_later};
use crate::timestamp::Timestamp;

/// The rate of requests at the start, which doubles by time, not by round trip: with answers of ten seconds, a
/// start by round trips would cost a quarter of a correct limit.
#[derive(Debug, Clone)]
pub(super) struct SlowStart {
    /// Requests per second.
    rate: f64,
    level: f64,
    at: Timestamp,
    doubled_at: Timestamp,
}

impl SlowStart {
    pub(super) fn new(configured: Option<f64>, now: Timestamp) -> Self {
        let rate = configured.map_or(FIRST_BURST, |rate| FIRST_BURST.max(rate / 4.0));
        Self { rate, level: FIRST_BURST, at: now, doubled_at: now }
    }

    /// Starts again, from a rate that was accepted.
    pub(super) fn again(accepted: f64, now: Timestamp) -> Self {
        let rate = if accepted > 0.0 { accepted } else { FIRST_BURST };
        Self { rate, level: 0.0, at: now, doubled_at: now }
    }

    /// Returns the time at which the next request can be sent.
    pub(super) fn ready_at(&self) -> Timestamp {
        seconds_later(self.at, ((1.0 - self.level) / self.rate).max(0.0))
    }

    /// Counts a request, and doubles the rate if the last doubling is a second and a latency ago.
    pub(super) fn take(&mut self, latency: f64, now: Timestamp) {
        let level = self.level + seconds_between(self.at, now) * self.rate;
        self.level = level.min(self.burst()) - 1.0;
        self.at = self.at.max(now);
        if seconds_between(self.doubled_at, now) > latency.max(1.0) {
            (self.rate, self.doubled_at) = ((self.rate * 2.0).min(MAX_RATE), now);
        }
    }

    pub(super) fn put_back(&mut self) {
        self.level += 1.0;
    }

    /// Returns whether requests of this mean cost could already have used all of a configured limit.
    pub(super) fn has_passed(&self, configured: &ConfiguredRate, mean_cost: f64) -> bool {
        self.rate * mean_cost >= configured.per_second
            && self.burst() * mean_cost >= configured.burst
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.at = self.at.saturating_sub(back);
        self.doubled_at = self.doubled_at.saturating_sub(back);
    }

    fn burst(&self) -> f64 {
        FIRST_BURST.max(self.rate * BURST)
    }
}

/// Seconds of the rate that can be sent at once.
const BURST: f64 = 0.05;

/// Beyond any client.
const MAX_RATE: f64 = 1e12;
