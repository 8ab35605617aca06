use std::time::Duration;

use super::units::seconds_between;
use crate::timestamp::Timestamp;

/// Requests in flight, and the cap on them that refusals taught.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    pub(super) now: u32,
    cap: Option<Cap>,
    /// The most requests in flight with one that was accepted since the last event.
    peak: u32,
    /// Successive unnamed events at a similar number in flight, above the peak.
    similar: u32,
    /// Requests in flight with the one whose refusal was the last event.
    last: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cap {
    pub(super) requests: u32,
    /// The time of the event, or of the last raise.
    pub(super) at: Timestamp,
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

    /// Notes an accepted request, and the cap's growth.
    pub(super) fn accepted(&mut self, latency: f64, now: Timestamp) {
        let Some(cap) = &mut self.cap else { return };
        let interval = RAISE_SECONDS.max(RAISE_LATENCIES * latency / f64::from(cap.requests));
        if seconds_between(cap.at, now) > interval {
            *cap = Cap { requests: cap.requests.saturating_add(1), at: now };
        }
    }

    pub(super) fn note_peak(&mut self, beside: u32) {
        self.peak = self.peak.max(beside);
    }

    /// Evaluates an event. Returns `true` if the refusal shows a limit of requests in flight.
    pub(super) fn refused(
        &mut self,
        beside: u32,
        named: Option<bool>,
        is_first: bool,
        now: Timestamp,
    ) -> bool {
        let tolerance = (0.2 * f64::from(beside)).max(1.0);
        let is_similar = beside > self.peak && f64::from(beside.abs_diff(self.last)) <= tolerance;
        self.similar =
            if is_similar && named.is_none() && !is_first { self.similar + 1 } else { 0 };
        (self.last, self.peak) = (beside, 0);
        let is_shown = named == Some(true) || self.similar >= 2;
        if is_shown && beside > 1 {
            self.cap = Some(Cap { requests: beside - 1, at: now });
            return true;
        }
        if self.cap.is_some_and(|cap| f64::from(beside) < 0.75 * f64::from(cap.requests)) {
            self.cap = None;
        }
        false
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
