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
    /// The end of a long `Retry-After` that a probe tests, and its length.
    promised: Timestamp,
    promised_for: Duration,
    /// `true` if the provider stated the last pause, and it is kept to.
    is_promised: bool,
    /// The time of the first refusal since the provider accepted a request.
    closed_since: Option<Timestamp>,
    /// Seconds of the last pause, if the provider didn't state them.
    waited: f64,
    /// `true` if the provider has accepted a request before the end of a long `Retry-After`.
    is_distrusted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// The next request is the probe.
    Due,
    /// The probe was sent at this time.
    Sent(Timestamp),
}

/// The time from an event until a request was accepted again.
#[derive(Debug)]
pub(super) struct Closure {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    /// Seconds for which it may have been over before a probe showed that.
    pub(super) uncertain: f64,
}

impl Pause {
    pub(super) fn new() -> Self {
        Self {
            until: Timestamp::UNIX_EPOCH,
            backoff: FIRST_BACKOFF,
            probe: None,
            promised: Timestamp::UNIX_EPOCH,
            promised_for: Duration::ZERO,
            is_promised: false,
            closed_since: None,
            waited: 0.0,
            is_distrusted: false,
        }
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now && self.probe.is_none()
    }

    /// Returns whether the refused request fits at the end of the pause, by what the provider stated.
    pub(super) fn is_promised(&self) -> bool {
        self.is_promised
    }

    /// Returns whether delays that the provider states are obeyed.
    pub(super) fn is_trusted(&self) -> bool {
        !self.is_distrusted
    }

    /// Returns whether the next request tests a long `Retry-After`, so that no learned rate delays it.
    pub(super) fn is_test_due(&self) -> bool {
        self.probe == Some(Probe::Due) && self.until < self.promised
    }

    pub(super) fn sent(&mut self, now: Timestamp) {
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

    /// Notes that a request was accepted that was sent after the last event. Returns the closure that has
    /// ended.
    pub(super) fn accepted(&mut self, sent_at: Timestamp) -> Option<Closure> {
        self.backoff = FIRST_BACKOFF;
        self.probe = None;
        self.is_distrusted |= seconds_between(sent_at, self.promised) > ROUNDED_UP;
        self.promised = Timestamp::UNIX_EPOCH;
        let since = self.closed_since.take()?;
        Some(Closure { since, until: sent_at, uncertain: self.waited })
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
        let pause = match stated {
            Some(after) if is_long && !self.is_distrusted => self.test_promise(after, now),
            Some(after) if !is_long => {
                self.is_promised = true;
                after.as_secs_f64()
            }
            // The refusal of a probe confirms the delay that it tests, if it states none itself.
            None if self.is_tested(now) => {
                self.is_promised = true;
                seconds_between(now, self.promised)
            }
            _ => self.backoff,
        };
        self.waited = if self.is_promised { 0.0 } else { pause };
        let until = now + Duration::from_secs_f64(pause.min(MAX_PAUSE));
        self.until = if self.is_distrusted { until } else { self.until.max(until) };
        if is_closed || self.is_tested(now) {
            self.probe = Some(Probe::Due);
        }
        pause
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.until = self.until.saturating_sub(back);
        self.promised = self.promised.saturating_sub(back);
        self.closed_since = self.closed_since.map(|since| since.saturating_sub(back));
        if let Some(Probe::Sent(at)) = &mut self.probe {
            *at = at.saturating_sub(back);
        }
    }

    /// Returns the seconds until the probe of a long `Retry-After`, or until its end if the probe was refused.
    /// A delay that the refused probe was answered with counts if it is longer, or ends earlier: a provider that
    /// always states the same one doesn't mean that the wait starts again.
    fn test_promise(&mut self, after: Duration, now: Timestamp) -> f64 {
        self.is_promised = self.is_tested(now);
        let ends = now + after;
        if !self.is_promised || after > self.promised_for || ends < self.promised {
            (self.promised, self.promised_for) = (ends, after);
        }
        if self.is_promised { seconds_between(now, self.promised) } else { PROBE }
    }

    /// Returns whether a long `Retry-After` is being tested.
    fn is_tested(&self, now: Timestamp) -> bool {
        !self.is_distrusted && self.promised > now
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

/// Seconds by which `Retry-After` exceeds the wait because it counts whole ones.
const ROUNDED_UP: f64 = 1.0;

/// A year in seconds.
const MAX_PAUSE: f64 = 366.0 * 86_400.0;
