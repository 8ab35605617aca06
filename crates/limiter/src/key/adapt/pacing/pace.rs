use std::time::Duration;

use super::units::{MIN_AMOUNT, seconds_between, seconds_later};
use crate::timestamp::Timestamp;

/// A learned rate of one dimension.
///
/// A request is paid for before it is sent: the level is 0 after an event, as the provider's bucket is.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// The rate that was measured last, an amount per second.
    rate: f64,
    /// The saved amount at `at`.
    level: f64,
    at: Timestamp,
    /// Seconds of the rate that can be saved.
    pub(super) saved: f64,
    /// Seconds since the last event in which the pace delayed requests, and in which it didn't.
    busy: f64,
    idle: f64,
    /// Seconds until the speed is back at the measured rate.
    pub(super) cycle: f64,
    /// The part by which the true rate may exceed the measured one.
    pub(super) error: f64,
    /// `true` if the saved amount has been full since a burst last used it.
    is_full: bool,
    /// The time at which a burst used all that was saved.
    burst_at: Option<Timestamp>,
    /// The time since which the speed has been at least the configured rate.
    pub(super) at_configured_since: Option<Timestamp>,
}

impl Pace {
    pub(super) fn new(rate: f64, at: Timestamp) -> Self {
        Self {
            rate: bounded(rate),
            level: 0.0,
            at,
            saved: SAVED,
            busy: 0.0,
            idle: 0.0,
            cycle: 1.0,
            error: 0.5,
            is_full: false,
            burst_at: None,
            at_configured_since: None,
        }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn idle(&self) -> f64 {
        self.idle
    }

    pub(super) fn busy(&self) -> f64 {
        self.busy
    }

    /// Returns whether the measured rate is exceeded, to find out whether the limit is higher.
    pub(super) fn is_growing(&self) -> bool {
        self.busy > self.cycle
    }

    /// Returns the rate at which requests are sent now: 3 % below the measured one at first, flat around it,
    /// then ever faster, as the congestion window of CUBIC. Far above, it doubles once per cycle.
    pub(super) fn speed(&self) -> f64 {
        let x = self.busy / self.cycle - 1.0;
        let doubled = self.error.powf(-1.0 / 3.0);
        if x > doubled {
            return self.rate * 2.0 * (x - doubled).min(MAX_DOUBLINGS).exp2();
        }
        let factor = if x < 0.0 { BELOW } else { self.error };
        self.rate * (1.0 + factor * x.powi(3))
    }

    /// Returns the time at which the saved amount covers a cost.
    pub(super) fn ready_at(&self, cost: f64) -> Timestamp {
        seconds_later(self.at, ((cost - self.level) / self.speed()).max(0.0))
    }

    /// Takes the cost of a request that is sent now.
    pub(super) fn take(&mut self, cost: f64, now: Timestamp) {
        let (speed, elapsed) = (self.speed(), seconds_between(self.at, now));
        let capacity = cost.max(speed * self.saved);
        let level = self.level + elapsed * speed;
        let unused = elapsed.min((level - capacity).max(0.0) / speed);
        self.level = self.level.max(level.min(capacity)) - cost;
        self.at = self.at.max(now);
        self.is_full |= unused > 0.0;
        if self.is_full && self.level < USED_UP * capacity {
            (self.is_full, self.burst_at) = (false, Some(now));
        }
        self.busy += elapsed - unused;
        self.idle += unused;
    }

    /// Returns the cost of a request that was never sent.
    pub(super) fn put_back(&mut self, cost: f64) {
        self.level += cost;
    }

    /// Doubles what can be saved if a burst has used all of it without an event. Returns the new burst.
    pub(super) fn test_burst(&mut self, now: Timestamp) -> f64 {
        if self.burst_at.is_some_and(|at| seconds_between(at, now) > BURST_TEST) {
            self.burst_at = None;
            self.saved *= 2.0;
        }
        self.saved * self.speed()
    }

    /// Sets the measured rate.
    pub(super) fn set_rate(&mut self, rate: f64) {
        self.rate = bounded(rate);
    }

    /// Begins a new cycle after an event.
    pub(super) fn begin_cycle(&mut self) {
        self.busy = 0.0;
        self.idle = 0.0;
    }

    /// Sets the saved amount at the end of a pause.
    pub(super) fn empty(&mut self, level: f64, until: Timestamp) {
        self.level = level;
        self.at = self.at.max(until);
        self.is_full = false;
        self.burst_at = None;
        self.at_configured_since = None;
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.at = self.at.saturating_sub(back);
        for time in [&mut self.burst_at, &mut self.at_configured_since].into_iter().flatten() {
            *time = time.saturating_sub(back);
        }
    }
}

fn bounded(rate: f64) -> f64 {
    rate.clamp(MIN_AMOUNT, MAX_RATE)
}

/// Shorter than the shortest burst that providers allow, so that what is saved doesn't exceed it.
const SAVED: f64 = 0.05;

/// The part of the rate by which requests are slower after an event, so that the provider recovers.
const BELOW: f64 = 0.03;

const MAX_DOUBLINGS: f64 = 30.0;

/// Beyond any provider; keeps products finite.
const MAX_RATE: f64 = 1e24;

/// The part of the saved amount that is left after a burst.
const USED_UP: f64 = 0.1;

/// Seconds after a burst in which a refusal would have arrived.
const BURST_TEST: f64 = 1.0;
