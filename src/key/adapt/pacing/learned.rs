use super::controller::Controller;
use super::in_flight::Cap;
use super::pace::Pace;
use crate::answer::learned::LearnedLimit;
use crate::quota::Dimension;
use crate::timestamp::Timestamp;

impl Controller {
    /// Returns the limits that requests are held to because of the provider's answers, to report and to save.
    pub(crate) fn learned(&self) -> Vec<LearnedLimit> {
        let rates = self.columns().iter().filter_map(|column| {
            let rate = column.pace.as_ref()?.rate();
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
    pub(crate) fn has_learned(&self, dimension: &Dimension) -> bool {
        match dimension {
            Dimension::Concurrency => self.in_flight().cap().is_some(),
            _ => self
                .columns()
                .iter()
                .any(|column| column.dimension == *dimension && column.pace.is_some()),
        }
    }

    /// Continues with saved limits instead of a slow start. They are tested as if they had just been measured.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub(crate) fn restore(&mut self, learned: &[LearnedLimit], now: Timestamp) {
        for limit in learned.iter().filter(|limit| limit.amount > 0.0) {
            if limit.dimension == Dimension::Concurrency {
                self.in_flight_mut().set_cap(Cap::new((limit.amount as u32).max(1), now));
                continue;
            }
            let mut pace = Pace::new(limit.amount, now);
            (pace.cycle, pace.error) = (RESTORED_CYCLE, RESTORED_ERROR);
            self.skip_slow_start().restore(&limit.dimension, pace, limit.events, now);
        }
    }
}

/// Seconds until a restored pace is back at its rate, and the part by which the truth may exceed it.
const RESTORED_CYCLE: f64 = 5.0;
const RESTORED_ERROR: f64 = 0.1;
