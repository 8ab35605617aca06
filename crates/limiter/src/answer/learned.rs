use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::quota::Dimension;
use crate::timestamp::Timestamp;

/// A limit that was measured by a provider's answers, and that requests are held to.
///
/// It displays as `20 requests/s (told 40)`: the measured rate, and that of the quota.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LearnedLimit {
    /// The dimension that is limited.
    pub dimension: Dimension,
    /// Amount per second; for [`Dimension::Concurrency`], requests in flight. A finite number above 0.
    pub amount: f64,
    /// The configured amount per second.
    pub configured: Option<f64>,
    /// The time of the event that measured it.
    pub measured_at: Timestamp,
    /// The events that measured it: each one halves the error, down to some percent.
    pub events: u32,
    /// The origin of the measurement.
    pub source: LearnedFrom,
}

/// The origin of a [`LearnedLimit`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LearnedFrom {
    /// Answers to this program.
    #[default]
    Answers,
    /// An earlier run, by a store; no answer has corrected it since.
    Store,
    /// Another program, by a bus; no answer has corrected it since.
    Bus,
}

impl LearnedFrom {
    /// Returns the name in stores and statistics: `answers`, `store` or `bus`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Store => "store",
            Self::Bus => "bus",
        }
    }
}

impl Eq for LearnedLimit {}

impl LearnedLimit {
    /// Creates a limit that was measured at a time by this number of events.
    pub fn new(dimension: Dimension, amount: f64, measured_at: Timestamp, events: u32) -> Self {
        let source = LearnedFrom::default();
        Self { dimension, amount, configured: None, measured_at, events, source }
    }

    /// Returns the origin, reliability and age of the measurement, in words:
    /// `measured 3 times, last 12s ago`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline_limiter::limiter::LearnedLimit;
    /// use paceline_limiter::{Timestamp, quota::Dimension};
    /// let limit = LearnedLimit::new(Dimension::Requests, 20.0, Timestamp::UNIX_EPOCH, 3);
    /// let now = Timestamp::UNIX_EPOCH + Duration::from_secs(12);
    /// assert_eq!(limit.provenance(now), "measured 3 times, last 12s ago");
    /// ```
    pub fn provenance(&self, now: Timestamp) -> String {
        let age = age(now.saturating_duration_since(self.measured_at));
        let measured = match self.events {
            0 => "accepted by the provider so far".to_owned(),
            1 => format!("a first estimate, {age} ago"),
            events => format!("measured {events} times, last {age} ago"),
        };
        match self.source {
            LearnedFrom::Answers => measured,
            LearnedFrom::Store => format!("{measured}, by an earlier run"),
            LearnedFrom::Bus => format!("{measured}, by another program"),
        }
    }

    /// Returns `false` for a limit that a refusal has measured only because it named no dimension, if it also
    /// measured one that is configured, or requests. `all` are the limits of the key.
    pub fn is_principal(&self, all: &[Self]) -> bool {
        let is_likely =
            |limit: &Self| limit.configured.is_some() || limit.dimension == Dimension::Requests;
        let is_likelier = |other: &Self| other.measured_at == self.measured_at && is_likely(other);
        is_likely(self) || !all.iter().any(is_likelier)
    }

    /// Returns whether the measurement is recent enough to start another run with.
    pub(crate) fn is_current(&self, now: Timestamp) -> bool {
        let is_valid = self.amount.is_finite() && self.amount > 0.0;
        is_valid && now.saturating_duration_since(self.measured_at) <= LONGEST_KEPT
    }
}

impl fmt::Display for LearnedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = Amount(self.amount);
        if self.dimension == Dimension::Concurrency {
            return write!(f, "{amount} requests in flight");
        }
        let dimension = self.dimension.as_str().replace('_', " ");
        match self.configured {
            Some(configured) => write!(f, "{amount} {dimension}/s (told {})", Amount(configured)),
            None => write!(f, "{amount} {dimension}/s (no limit was configured)"),
        }
    }
}

/// An amount with about three significant digits.
struct Amount(f64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0 {
            100.0.. => 0,
            10.0.. => 1,
            1.0.. => 2,
            _ => 3,
        };
        let text = format!("{:.digits$}", self.0);
        let is_fraction = text.contains('.');
        f.write_str(if is_fraction {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        })
    }
}

fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ ..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3_600),
    }
}

/// The age up to which a measurement says something about the provider's present limits.
const LONGEST_KEPT: Duration = Duration::from_secs(86_400);
