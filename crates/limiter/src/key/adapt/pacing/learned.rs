use super::column::{Column, TRIAL};
use super::controller::Controller;
use super::in_flight::Cap;
use super::pace::Pace;
use super::units::seconds_between;
use crate::answer::learned::LearnedLimit;
use crate::quota::Dimension;
use crate::timestamp::Timestamp;

impl Controller {
    /// Returns the limits that requests are held to because of the provider's answers, to report and to save.
    pub(crate) fn learned(&self, now: Timestamp) -> Vec<LearnedLimit> {
        let rates = self.columns().iter().filter_map(|column| {
            let rate = column.learned_rate(now)?;
            let configured = column.configured.as_ref().map(|configured| configured.per_second);
            let (dimension, measured_at) = (column.dimension.clone(), column.last_event);
            let limit = LearnedLimit::new(dimension, rate, measured_at, column.events);
            Some(LearnedLimit { configured, ..limit })
        });
        let cap = self.in_flight().cap().map(|cap| {
            let requests = f64::from(cap.requests);
            LearnedLimit::new(Dimension::Concurrency, requests, cap.at, 1)
        });
        rates.chain(cap).collect()
    }

    /// Returns whether requests are held to a learned limit of this dimension.
    pub(crate) fn has_learned(&self, dimension: &Dimension, now: Timestamp) -> bool {
        let of_rate =
            |column: &Column| column.dimension == *dimension && column.learned_rate(now).is_some();
        match dimension {
            Dimension::Concurrency => self.in_flight().cap().is_some(),
            _ => self.columns().iter().any(of_rate),
        }
    }

    /// Continues with saved limits instead of a slow start. They are tested as if they had just been measured.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub(crate) fn restore(&mut self, learned: &[LearnedLimit], now: Timestamp) {
        for limit in learned.iter().filter(|limit| limit.amount > 0.0) {
            if limit.dimension == Dimension::Concurrency {
                self.in_flight.set_cap(Cap::new((limit.amount as u32).max(1), now));
                continue;
            }
            let mut pace = Pace::new(limit.amount, now);
            (pace.cycle, pace.error) = (RESTORED_CYCLE, RESTORED_ERROR);
            self.skip_slow_start().restore(&limit.dimension, pace, limit.events, now);
        }
    }
}

impl Column {
    /// Returns the measured rate, or that of the pace if it has grown beyond the error. `None` if the pace has
    /// stood at a user's limit for a while: it only tests bursts then.
    fn learned_rate(&self, now: Timestamp) -> Option<f64> {
        let (pace, configured) = (self.pace.as_ref()?, self.configured.as_ref());
        let stands = pace.at_configured_since.is_some_and(|at| seconds_between(at, now) >= TRIAL);
        let (rate, speed) = (pace.rate(), pace.speed());
        let grown = if speed > rate * (1.0 + pace.error) { speed } else { rate };
        let ceiling = configured.filter(|configured| configured.is_ceiling);
        let grown = ceiling.map_or(grown, |ceiling| grown.min(ceiling.per_second));
        (ceiling.is_none() || !stands).then_some(grown)
    }
}

/// Seconds until a restored pace is back at its rate, and the part by which the truth may exceed it.
const RESTORED_CYCLE: f64 = 5.0;
const RESTORED_ERROR: f64 = 0.1;
