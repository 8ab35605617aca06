use std::time::Duration;

use crate::engine::Wait;
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// A limit that was reached: the request isn't sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocked<'a> {
    /// The dimension whose learned rate is reached.
    pub(crate) dimension: Option<&'a Dimension>,
    /// The time at which the request can be sent, or [`Wait::Unknown`] if that depends on an answer.
    pub(crate) wait: Wait,
}

/// A refusal for a rate or a number of requests in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RateRefusal<'a> {
    /// The time at which the request was sent, as passed to [`super::Controller::sent`].
    pub(crate) sent_at: Timestamp,
    pub(crate) cost: &'a Cost,
    pub(crate) retry_after: Option<Duration>,
    /// The dimension that the provider names.
    pub(crate) dimension: Option<&'a Dimension>,
}

impl RateRefusal<'_> {
    pub(super) fn has_retry_after(&self) -> bool {
        self.retry_after.is_some_and(|after| !after.is_zero())
    }

    /// Returns how often a limit may seem to fall that refuses such requests. One that is named is more likely to be
    /// the reason, and the rate of one that counts other amounts than requests is measured less exactly.
    pub(super) fn explained_falls(&self) -> usize {
        match self.dimension {
            None => 0,
            Some(Dimension::Requests) => 1,
            Some(_) => 2,
        }
    }
}

/// The reaction to a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacingReaction {
    /// The end of the pause.
    pub(crate) until: Timestamp,
    /// `false` if the refusal belongs to the same event as an earlier one.
    pub(crate) is_event: bool,
    /// `true` if the refusal is chance: only the refused request has to wait.
    pub(crate) is_chance: bool,
}
