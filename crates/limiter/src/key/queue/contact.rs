use std::task::Waker;
use std::time::Duration;

use super::wakers::replace;
use crate::timestamp::Timestamp;

/// The task that polls a waiter.
#[derive(Debug)]
pub(super) struct Contact {
    pub(super) waker: Waker,
    /// The time by which the task polls the waiter again, unless it has forgotten it.
    pub(super) polls_by: Timestamp,
    /// The time of the last poll.
    pub(super) polled_at: Timestamp,
    /// The time until which the last poll shows that the waiter isn't forgotten.
    pub(super) present_until: Timestamp,
}

impl Contact {
    /// Returns the contact of a waiter that was just polled.
    pub(super) fn new(waker: Waker, now: Timestamp) -> Self {
        let polls_by = now + poll_period(0, 0);
        Self { waker, polls_by, polled_at: now, present_until: polls_by + GRACE }
    }

    /// Replaces the waker. Returns the old one.
    pub(super) fn set_waker(&mut self, waker: &Waker) -> Option<Waker> {
        replace(&mut self.waker, waker)
    }
}

/// Returns the time after which a waiter has to be polled again: the longer, the more go before it. Those of
/// one key are polled about 5,000 times a second in all at most.
pub(crate) fn poll_period(rank: usize, waiters: usize) -> Duration {
    let [rank, waiters] = [rank, waiters].map(count);
    let more = (FIRST_PERIOD / 64).saturating_mul(rank.saturating_mul(rank));
    FIRST_PERIOD + more.min(PERIOD_EACH.saturating_mul(waiters))
}

pub(super) fn count(waiters: usize) -> u32 {
    u32::try_from(waiters).unwrap_or(u32::MAX)
}

/// The time after which the first waiter has to be polled again.
pub(super) const FIRST_PERIOD: Duration = Duration::from_millis(250);

/// The time from a poll of one of many waiters to that of another.
pub(super) const PERIOD_EACH: Duration = Duration::from_micros(200);

/// The time by which a poll may be late.
pub(super) const GRACE: Duration = Duration::from_millis(100);
