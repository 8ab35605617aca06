use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::timestamp::Timestamp;

/// The used part of a window of the account, as the provider has last stated it.
///
/// It displays as `5h window 92 % used`, with `, held to 90 %` where a quota does that.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Utilization {
    /// The name of the window: `5h`, `7d`.
    pub window: String,
    /// The used part: 1 if the window is used up. A finite number, at least 0.
    pub used: f64,
    /// The time at which the window starts again.
    pub resets_at: Option<Timestamp>,
    /// The time of the response that stated it.
    pub observed_at: Timestamp,
    /// The part to which the quota of the key holds its requests.
    pub held_to: Option<f64>,
}

impl Eq for Utilization {}

impl Utilization {
    /// Creates the used part of a window, which nothing is held to.
    pub fn new(window: impl Into<String>, used: f64) -> Self {
        let observed_at = Timestamp::UNIX_EPOCH;
        Self { window: window.into(), used, resets_at: None, observed_at, held_to: None }
    }

    /// Returns all times of the window, to move them when the clock was set back.
    pub(crate) fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        self.resets_at.as_mut().into_iter().chain([&mut self.observed_at])
    }

    /// Returns whether the window hasn't started again. One without a known reset counts for a day.
    pub(crate) fn is_current(&self, now: Timestamp) -> bool {
        self.resets_at.unwrap_or(self.observed_at + UNKNOWN_RESET) > now
    }
}

impl fmt::Display for Utilization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} window {} % used", self.window, percent(self.used))?;
        self.held_to.map_or(Ok(()), |part| write!(f, ", held to {} %", percent(part)))
    }
}

/// The time for which a window counts if its reset isn't known.
const UNKNOWN_RESET: Duration = Duration::from_secs(86_400);

/// Returns a part in percent, with at most one decimal.
fn percent(part: f64) -> f64 {
    (part * 1_000.0).round() / 10.0
}
