use std::time::Duration;

use super::units::seconds_between;
use crate::timestamp::Timestamp;

/// The pause after a refusal: when requests are sent again, and whether one alone goes first.
#[derive(Debug)]
pub(super) struct Pause {
    /// No request is sent before.
    pub(super) until: Timestamp,
    /// Seconds of the next pause for which the provider states none.
    backoff: f64,
    /// The request that has to be answered before others are sent.
    pub(super) probe: Option<Probe>,
    /// The end of a long `Retry-After` that a probe tests.
    promised: Timestamp,
    /// `true` if the provider stated the last pause, and it is kept to.
    is_promised: bool,
    /// The time of the first refusal since the provider accepted a request.
    closed_since: Option<Timestamp>,
    /// The time at which it was open again the last time, or of the first request.
    opened: Option<Timestamp>,
    /// Seconds between the times at which the provider was open again after long closures: the length of its
    /// window.
    period: Option<f64>,
    /// `true` if the provider keeps to long values of `Retry-After`, once a probe has tested it.
    is_honest: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// The next request is the probe.
    Due,
    /// The probe was sent at this time.
    Sent(Timestamp),
}

impl Pause {
    pub(super) fn new() -> Self {
        Self {
            until: Timestamp::UNIX_EPOCH,
            backoff: FIRST_BACKOFF,
            probe: None,
            promised: Timestamp::UNIX_EPOCH,
            is_promised: false,
            closed_since: None,
            opened: None,
            period: None,
            is_honest: None,
        }
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now && self.probe.is_none()
    }

    /// Returns whether the refused request fits at the end of the pause, by what the provider stated.
    pub(super) fn is_promised(&self) -> bool {
        self.is_promised
    }

    pub(super) fn sent(&mut self, now: Timestamp) {
        self.opened.get_or_insert(now);
        if self.probe == Some(Probe::Due) {
            self.probe = Some(Probe::Sent(now));
        }
    }

    /// Repeats a probe that ended without an answer.
    pub(super) fn unanswered(&mut self, sent_at: Timestamp) {
        if self.probe == Some(Probe::Sent(sent_at)) {
            self.probe = Some(Probe::Due);
        }
    }

    /// Notes that a request was accepted that was sent after the last event.
    pub(super) fn accepted(&mut self, sent_at: Timestamp) {
        if let Some(since) = self.closed_since.take() {
            self.open_again(since, sent_at);
        }
        self.backoff = FIRST_BACKOFF;
        let is_tested = self.is_honest.is_none() && self.promised > Timestamp::UNIX_EPOCH;
        if self.probe.take().is_some() && is_tested {
            self.is_honest = Some(self.promised <= sent_at);
        }
    }

    /// Pauses after an answer that says that the provider is overloaded, then sends one request alone.
    pub(super) fn overloaded(&mut self, retry_after: Option<Duration>, now: Timestamp) {
        let stated = retry_after.map_or(0.0, |after| after.as_secs_f64().min(LONG));
        self.until = self.until.max(now + Duration::from_secs_f64(stated.max(self.backoff)));
        self.probe = Some(Probe::Due);
        self.back_off();
    }

    /// Pauses after an event. `is_closed` if nothing was accepted since the last one. Returns the seconds of
    /// the pause.
    pub(super) fn refused(
        &mut self,
        retry_after: Option<Duration>,
        is_closed: bool,
        now: Timestamp,
    ) -> f64 {
        self.probe = None;
        let stated = retry_after.filter(|after| !after.is_zero());
        let is_long = stated.is_some_and(|after| after.as_secs_f64() > LONG);
        if is_closed {
            self.back_off();
        }
        self.closed_since.get_or_insert(now);
        self.is_promised = false;
        let pause = match (stated, self.is_honest) {
            (None, _) => self.unstated(is_closed, now),
            (Some(_), Some(false)) if is_long => self.unstated(is_closed, now),
            (Some(after), None) if is_long => self.test_promise(after, now),
            (Some(after), _) => {
                self.is_promised = true;
                after.as_secs_f64()
            }
        };
        let until = now + Duration::from_secs_f64(pause.min(MAX_PAUSE));
        self.until = if self.is_honest == Some(false) { until } else { self.until.max(until) };
        if is_closed || self.is_tested(now) {
            self.probe = Some(Probe::Due);
        }
        pause
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.until = self.until.saturating_sub(back);
        self.promised = self.promised.saturating_sub(back);
        self.closed_since = self.closed_since.map(|since| since.saturating_sub(back));
        self.opened = self.opened.map(|opened| opened.saturating_sub(back));
        if let Some(Probe::Sent(at)) = &mut self.probe {
            *at = at.saturating_sub(back);
        }
    }

    /// Returns the seconds of a pause for which the provider states none. One that counts in windows is probed
    /// when its window is about to end.
    fn unstated(&self, is_closed: bool, now: Timestamp) -> f64 {
        let rest = self.rest_of_window(now).filter(|_| is_closed);
        self.backoff.max(WINDOW_PART * rest.unwrap_or_default())
    }

    /// Returns the seconds until the provider's window is expected to end.
    fn rest_of_window(&self, now: Timestamp) -> Option<f64> {
        let (period, opened) = (self.period?, self.opened?);
        Some(period - seconds_between(opened, now) % period)
    }

    /// Returns the seconds until the probe of a long `Retry-After`, or until its end once a probe was refused.
    fn test_promise(&mut self, after: Duration, now: Timestamp) -> f64 {
        self.is_promised = self.promised > now;
        if !self.is_promised {
            self.promised = now + after;
        }
        let rest = seconds_between(now, self.promised);
        if self.is_promised { rest } else { rest.min(PROBE) }
    }

    /// Returns whether a long `Retry-After` is being tested.
    fn is_tested(&self, now: Timestamp) -> bool {
        self.is_honest.is_none() && self.promised > now
    }

    /// Measures the window of the provider after a closure.
    fn open_again(&mut self, since: Timestamp, sent_at: Timestamp) {
        if seconds_between(since, sent_at) < LONG_CLOSURE {
            return;
        }
        if let Some(opened) = self.opened {
            let interval = seconds_between(opened, sent_at);
            let windows = self.period.map_or(1.0, |period| (interval / period).round().max(1.0));
            self.period = Some(interval / windows);
        }
        self.opened = Some(sent_at);
    }

    /// Returns the seconds of the provider's window.
    pub(super) fn period(&self) -> Option<f64> {
        self.period.filter(|_| !self.is_promised)
    }

    fn back_off(&mut self) {
        self.backoff = (self.backoff * 2.0).min(MAX_BACKOFF);
    }
}

/// Seconds of the first pause for which the provider states none, and of the longest one.
const FIRST_BACKOFF: f64 = 0.25;
const MAX_BACKOFF: f64 = 16.0;

/// Seconds up to which `Retry-After` is obeyed without a test. Some providers always state a minute.
const LONG: f64 = 5.0;

/// Seconds after which a probe tests a long `Retry-After`.
const PROBE: f64 = 2.0;

/// A year in seconds.
const MAX_PAUSE: f64 = 366.0 * 86_400.0;

/// Seconds of a closure that a bucket doesn't explain.
const LONG_CLOSURE: f64 = 4.0;

/// The part of the rest of a window after which it is probed, since its length is measured from above.
const WINDOW_PART: f64 = 0.9;
