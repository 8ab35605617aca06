//! The count of one limit of a provider in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use paceline::Timestamp;

/// The state of a limit.
pub(super) enum Meter {
    Bucket { rate: f64, room: f64, level: f64, at: Timestamp },
    Fixed { amount: f64, seconds: f64, begin: Timestamp, used: f64 },
    Sliding { amount: f64, seconds: f64, taken: VecDeque<(Timestamp, f64)> },
}

/// The kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Counting {
    /// A bucket that holds the rate of `burst` seconds.
    Bucket,
    /// Windows of this many seconds, the first from the start.
    Fixed(f64),
    /// A window of this many seconds before each request.
    Sliding(f64),
}

impl Meter {
    pub(super) fn new(counting: Counting, rate: f64, burst: f64, now: Timestamp) -> Self {
        let room = (rate * burst).max(1.0);
        match counting {
            Counting::Bucket => Self::Bucket { rate, room, level: room, at: now },
            Counting::Fixed(seconds) => {
                Self::Fixed { amount: rate * seconds, seconds, begin: now, used: 0.0 }
            }
            Counting::Sliding(seconds) => {
                Self::Sliding { amount: rate * seconds, seconds, taken: VecDeque::new() }
            }
        }
    }

    /// Takes a cost, or returns the seconds until it fits. A bucket refills at this part of its rate.
    pub(super) fn take(&mut self, cost: f64, part: f64, now: Timestamp) -> Result<(), f64> {
        self.advance(part, now);
        let short = match self {
            Self::Bucket { rate, level, .. } => (cost - *level) / (*rate * part),
            Self::Fixed { amount, seconds, begin, used } => {
                let rest = *seconds - (now - *begin).as_secs_f64();
                if *used + cost > *amount { rest.max(0.001) } else { 0.0 }
            }
            Self::Sliding { amount, seconds, taken } => {
                let rest = |at: &Timestamp| *seconds - (now - *at).as_secs_f64();
                let mut over = taken.iter().map(|(_, cost)| cost).sum::<f64>() + cost - *amount;
                let mut leaving = taken.iter();
                let mut short = 0.0;
                while over > 0.0
                    && let Some((at, cost)) = leaving.next()
                {
                    (short, over) = (rest(at), over - cost);
                }
                short
            }
        };
        if short > 1e-9 {
            return Err(short);
        }
        match self {
            Self::Bucket { level, .. } => *level -= cost,
            Self::Fixed { used, .. } => *used += cost,
            Self::Sliding { taken, .. } => taken.push_back((now, cost)),
        }
        Ok(())
    }

    pub(super) fn left(&self) -> f64 {
        match self {
            Self::Bucket { level, .. } => level.max(0.0),
            Self::Fixed { amount, used, .. } => amount - used,
            Self::Sliding { amount, taken, .. } => {
                amount - taken.iter().map(|(_, cost)| cost).sum::<f64>()
            }
        }
    }

    /// Returns the seconds until nothing is used.
    pub(super) fn full_after(&self, now: Timestamp) -> f64 {
        let until = |at: Timestamp, seconds: f64| seconds - (now - at).as_secs_f64();
        match self {
            Self::Bucket { rate, room, level, .. } => (room - level) / rate,
            Self::Fixed { seconds, begin, .. } => until(*begin, *seconds),
            Self::Sliding { seconds, taken, .. } => {
                taken.back().map_or(0.0, |(at, _)| until(*at, *seconds))
            }
        }
    }

    fn advance(&mut self, part: f64, now: Timestamp) {
        match self {
            Self::Bucket { rate, room, level, at } => {
                let refilled = *level + (now - *at).as_secs_f64() * *rate * part;
                (*level, *at) = (refilled.min(*room), now);
            }
            Self::Fixed { seconds, begin, used, .. } => {
                while (now - *begin).as_secs_f64() >= *seconds {
                    (*begin, *used) = (*begin + Duration::from_secs_f64(*seconds), 0.0);
                }
            }
            Self::Sliding { seconds, taken, .. } => {
                while taken.front().is_some_and(|(at, _)| (now - *at).as_secs_f64() >= *seconds) {
                    taken.pop_front();
                }
            }
        }
    }
}
