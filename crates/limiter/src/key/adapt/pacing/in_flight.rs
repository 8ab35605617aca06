use std::time::Duration;

use super::units::seconds_between;
use crate::timestamp::Timestamp;

/// Requests in flight, and the cap on them that refusals taught.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    pub(super) now: u32,
    cap: Option<Cap>,
    /// The most requests in flight with one that was accepted since the first of the similar events.
    peak: u32,
    /// Successive unnamed events at a similar number in flight, above the peak.
    similar: u32,
    /// Caps that were disproved.
    disproved: u32,
    /// Requests in flight with the one whose refusal was the last event.
    last: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cap {
    pub(super) requests: u32,
    /// The time of the event, or of the last raise.
    pub(super) at: Timestamp,
    /// The cap after the last event. A larger one is being tested.
    base: u32,
    /// Half of the cap after the last event, to which its further refusals lower it at most.
    least: u32,
    /// The cap after the first of successive events. One far below it has another reason.
    highest: u32,
    /// The refusals named requests in flight, so that the cap may be wrong in its number only.
    is_named: bool,
}

impl Cap {
    pub(super) fn new(requests: u32, at: Timestamp) -> Self {
        let least = requests.div_ceil(2);
        Self { requests, at, base: requests, least, highest: requests, is_named: false }
    }

    /// Returns whether so many more requests are accepted that the cap isn't a limit.
    fn is_disproved(&self) -> bool {
        !self.is_named && self.requests > self.base.saturating_add(self.base / 2).saturating_add(2)
    }
}

impl InFlight {
    pub(super) fn cap(&self) -> Option<Cap> {
        self.cap
    }

    pub(super) fn set_cap(&mut self, cap: Cap) {
        self.cap = Some(cap);
    }

    pub(super) fn is_full(&self) -> bool {
        self.cap.is_some_and(|cap| self.now >= cap.requests)
    }

    /// Notes a request that was accepted, and raises the cap: by one after a while, then at once by more for as
    /// long as requests above it are accepted. Returns `true` if that disproves the cap.
    pub(super) fn accepted(
        &mut self,
        sent_at: Timestamp,
        beside: u32,
        latency: f64,
        now: Timestamp,
    ) -> bool {
        self.peak = self.peak.max(beside);
        let Some(cap) = &mut self.cap else { return false };
        let interval = RAISE_LATENCIES * latency / f64::from(cap.requests);
        let interval = interval.clamp(RAISE_SECONDS, LONGEST_RAISE);
        let is_raise_accepted =
            cap.requests > cap.base && beside >= cap.requests && sent_at > cap.at;
        if is_raise_accepted || seconds_between(cap.at, now) > interval {
            let raise = (cap.requests - cap.base).max(1);
            (cap.requests, cap.at) = (cap.requests.saturating_add(raise), now);
        }
        let is_disproved = cap.is_disproved();
        if is_disproved {
            self.drop_cap();
        }
        is_disproved
    }

    pub(super) fn drop_cap(&mut self) {
        self.cap = None;
        self.disproved = (self.disproved + 1).min(10);
    }

    /// Evaluates an event. Returns `true` if the refusal shows a limit of requests in flight.
    pub(super) fn refused(
        &mut self,
        beside: u32,
        named: Option<bool>,
        has_retry_after: bool,
        now: Timestamp,
    ) -> bool {
        let tolerance = (0.2 * f64::from(beside)).max(1.0);
        let is_similar = beside > self.peak && f64::from(beside.abs_diff(self.last)) <= tolerance;
        let may_be_flight = is_similar && named.is_none() && !has_retry_after;
        if may_be_flight {
            self.similar += 1;
        } else {
            (self.similar, self.peak) = (0, 0);
        }
        self.last = beside;
        let highest = self.cap.map_or(0, |cap| cap.highest);
        if f64::from(beside) < 0.75 * f64::from(highest) {
            self.drop_cap();
            self.similar = 0;
        }
        let is_named = named == Some(true);
        if is_named || beside > 1 && self.similar >= 2 << self.disproved {
            let requests = beside.saturating_sub(1).max(1);
            let highest = if self.cap.is_some() { highest.max(requests) } else { requests };
            self.cap = Some(Cap { highest, is_named, ..Cap::new(requests, now) });
            return true;
        }
        false
    }

    /// Reacts to a further refusal of one event. A cap that the refusals named is lowered by one, to half of it at
    /// most: a client that reads its answers late has sent more than the limit at once. Another cap is dropped if
    /// the refusals are too many: at a cap, one request per event is above the limit. Returns `true` if it was
    /// dropped.
    pub(super) fn refused_again(&mut self, flight: u32) -> bool {
        if let Some(cap) = self.cap.as_mut().filter(|cap| cap.is_named) {
            let lowered = cap.requests.saturating_sub(1).max(cap.least);
            (cap.requests, cap.base) = (lowered, lowered);
            return false;
        }
        let is_wrong = self.cap.is_some_and(|cap| flight > LARGEST_FLIGHT.max(cap.requests / 16));
        if is_wrong {
            self.drop_cap();
        }
        is_wrong
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        if let Some(cap) = &mut self.cap {
            cap.at = cap.at.saturating_sub(back);
        }
    }
}

/// The cap grows by one request after this time, or after this many latencies divided by the cap: each trial
/// costs a refusal.
const RAISE_SECONDS: f64 = 20.0;
const RAISE_LATENCIES: f64 = 60.0;
const LONGEST_RAISE: f64 = 60.0;

/// Refusals of one event that a correct cap can cause, since several requests start at once.
const LARGEST_FLIGHT: u32 = 3;
