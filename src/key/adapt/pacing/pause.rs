use std::time::Duration;

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
    /// Whether the provider keeps to long values of `Retry-After`, once a probe has tested it.
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
            is_honest: None,
        }
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now && self.probe.is_none()
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

    /// Notes that a request was accepted that was sent after the last event.
    pub(super) fn accepted(&mut self, now: Timestamp) {
        self.backoff = FIRST_BACKOFF;
        if self.probe.take().is_some() && self.promised > now && self.is_honest.is_none() {
            self.is_honest = Some(false);
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
        let was_probe = self.probe.take().is_some();
        let stated = retry_after.filter(|after| !after.is_zero());
        let is_long = stated.is_some_and(|after| after.as_secs_f64() > LONG);
        if is_closed {
            self.back_off();
        }
        let pause = match (stated, self.is_honest) {
            (None, _) => self.backoff,
            (Some(_), Some(false)) if is_long => self.backoff,
            (Some(after), None) if is_long && !was_probe => {
                self.promised = now + after;
                self.probe = Some(Probe::Due);
                PROBE_AFTER
            }
            (Some(after), _) => {
                if was_probe && self.promised > now {
                    self.is_honest = Some(true);
                }
                let promised =
                    if self.is_honest == Some(true) { self.promised - now } else { Duration::ZERO };
                after.max(promised).as_secs_f64()
            }
        };
        let until = now + Duration::from_secs_f64(pause.min(MAX_PAUSE));
        self.until = if self.is_honest == Some(false) { until } else { self.until.max(until) };
        if is_closed {
            self.probe = Some(Probe::Due);
        }
        pause
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.until = self.until.saturating_sub(back);
        self.promised = self.promised.saturating_sub(back);
        if let Some(Probe::Sent(at)) = &mut self.probe {
            *at = at.saturating_sub(back);
        }
    }

    fn back_off(&mut self) {
        self.backoff = (self.backoff * 2.0).min(MAX_BACKOFF);
    }
}

/// Seconds of the first pause for which the provider states none, and of the longest one.
const FIRST_BACKOFF: f64 = 0.25;
const MAX_BACKOFF: f64 = 8.0;

/// Seconds up to which `Retry-After` is obeyed without a test. Some providers always state a minute.
const LONG: f64 = 5.0;

/// Seconds after which a probe tests a long `Retry-After`.
const PROBE_AFTER: f64 = 2.0;

/// A year in seconds.
const MAX_PAUSE: f64 = 366.0 * 86_400.0;
