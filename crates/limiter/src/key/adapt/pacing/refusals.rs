use std::time::Duration;

use super::columns::Measurement;
use super::controller::Controller;
use super::last_event::LastEvent;
use super::reaction::{PacingReaction, RateRefusal};
use super::send_log::SentRequest;
use super::slow_start::SlowStart;
use super::trial::{Refused, Shown};
use super::units::{add_to_mean, seconds_between};
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// Refusals for a limit, or by chance.
impl Controller {
    /// Reacts to a refusal for a limit, or by chance.
    pub(crate) fn refused(&mut self, refusal: &RateRefusal<'_>, now: Timestamp) -> PacingReaction {
        let sent = self.answered(refusal.sent_at, true);
        add_to_mean(&mut self.refusal_latency, seconds_between(refusal.sent_at, now));
        let is_named = refusal.dimension.is_some();
        let is_new = self.is_new(refusal.sent_at);
        let requests = self.columns.requests();
        let chance = self.chances.of(is_named);
        if is_new && chance.explains(&sent, now) {
            return self.set_apart(&sent, refusal);
        }
        let shown = if is_new { self.trials.refused(refusal.sent_at) } else { Shown::NoTrial };
        let is_long = refusal.retry_after.is_some_and(|after| after > LONGEST_TRIED_PAUSE);
        if shown == Shown::Nothing && !(is_long && self.pause.is_trusted()) {
            return self.set_apart(&sent, refusal);
        }
        chance.react(sent.number, requests);
        if shown == Shown::Limit {
            return self.fail_trial(&sent, refusal, now);
        }
        if !is_new {
            self.exclude(&sent, refusal.cost);
            self.last.flight = self.last.flight.saturating_add(1);
            if self.in_flight.refused_again(self.last.flight) {
                self.columns.resume(now, self.pause.until);
            }
            return PacingReaction { until: self.pause.until, is_event: false, is_chance: false };
        }
        self.last.reacted = Some(now);
        self.events = self.events.saturating_add(1);
        let is_closed = self.last.accepted_nothing_before(&sent);
        let pause = self.pause.refused(refusal.retry_after, is_closed, now);
        if is_closed {
            self.exclude(&sent, refusal.cost);
        } else {
            let pause = pause.min(LONGEST_MEASURED_PAUSE);
            let falls = self.measure(&sent, refusal, pause, now);
            let chance = self.chances.of(is_named);
            if chance.is_shown(falls, refusal.explained_falls()) {
                chance.show(requests, now);
                self.restart(now);
            } else if !sent.is_growing {
                self.begin_trial(&sent, refusal, now);
            } else if falls == 0 {
                chance.begin();
            }
        }
        self.empty(refusal.cost);
        PacingReaction { until: self.pause.until, is_event: true, is_chance: false }
    }

    /// Finds out whether a refusal below the measured rate was chance. Where requests in flight are limited, where windows
    /// begin anew, and where the next request is a probe, what is accepted afterwards says nothing.
    fn begin_trial(&mut self, sent: &SentRequest, refusal: &RateRefusal<'_>, now: Timestamp) {
        let is_concurrency = refusal.dimension == Some(&Dimension::Concurrency);
        let is_limited = is_concurrency || self.in_flight.cap().is_some();
        let is_long = self.pause.until > now + LONGEST_TRIED_PAUSE;
        if is_limited || is_long || self.pause.probe.is_some() || self.columns.has_window() {
            return;
        }
        let is_named = refusal.dimension.is_some();
        let may_be_in_flight = !is_named && !refusal.has_retry_after();
        let refused = Refused {
            at: sent.at,
            requests_per_second: self.columns.requests_per_second(),
            rates: self.columns.rates(),
            latency: self.refusal_latency,
            beside: if may_be_in_flight { sent.beside } else { 0 },
            is_named,
        };
        self.trials.begin(refused, self.pause.until);
    }

    /// Raises the rate that a trial has disproved. Two trials show chance.
    pub(super) fn pass_trial(&mut self, is_named: bool, passed: usize, now: Timestamp) {
        self.columns.double(now);
        let requests = self.columns.requests();
        let chance = self.chances.of(is_named);
        if chance.is_shown(passed, 1) {
            chance.show(requests, now);
            self.restart(now);
        }
    }

    /// Pauses again after a trial that has shown that there is a limit. Its rate is known already.
    fn fail_trial(
        &mut self,
        sent: &SentRequest,
        refusal: &RateRefusal<'_>,
        now: Timestamp,
    ) -> PacingReaction {
        self.last.reacted = Some(now);
        self.exclude(sent, refusal.cost);
        self.pause.refused(refusal.retry_after, false, now);
        self.empty(refusal.cost);
        PacingReaction { until: self.pause.until, is_event: false, is_chance: false }
    }

    /// Takes a request back whose refusal says nothing about a rate.
    fn set_apart(&mut self, sent: &SentRequest, refusal: &RateRefusal<'_>) -> PacingReaction {
        self.exclude(sent, refusal.cost);
        self.pause.unanswered(refusal.sent_at);
        self.columns.put_back(refusal.cost);
        PacingReaction { until: self.pause.until, is_event: false, is_chance: true }
    }

    /// Empties the learned rates until the end of the pause, but for the request that the provider has promised.
    fn empty(&mut self, cost: &Cost) {
        let promised = self.pause.is_promised().then_some(cost);
        self.columns.empty(promised, self.pause.until);
    }

    /// Looks for the limits again, since the refusals that seemed to show them were chance.
    fn restart(&mut self, now: Timestamp) {
        let speed = self.columns.restart(now);
        self.slow_start = Some(SlowStart::again(speed, now));
        self.in_flight.drop_cap();
        self.trials.end();
    }

    /// Measures the limit that an event shows. Returns how often it must have fallen lately.
    fn measure(
        &mut self,
        sent: &SentRequest,
        refusal: &RateRefusal<'_>,
        pause: f64,
        now: Timestamp,
    ) -> usize {
        let named = refusal.dimension.filter(|named| refusal.cost.amount(named) > 0);
        let is_slow_start = self.slow_start.take().is_some();
        let is_concurrency = named.map(|named| *named == Dimension::Concurrency);
        let mut falls = 0;
        if self.in_flight.refused(sent.beside, is_concurrency, refusal.has_retry_after(), now) {
            self.columns.suspend(refusal.cost);
        } else if self.columns.resume(now, self.pause.until) {
            self.columns.exclude(refusal.cost, sent.number);
        } else {
            let named = named.filter(|named| **named != Dimension::Concurrency);
            let cost = refusal.cost;
            let delay = self.refusal_latency;
            falls = self
                .columns
                .measure(&Measurement { sent, cost, named, pause, delay, is_slow_start }, now);
        }
        self.last = LastEvent { number: Some(sent.number), refusals: 0, flight: 1, ..self.last };
        falls
    }
}

/// Seconds of a pause that lengthen cycles: a `Retry-After` of a minute says nothing about the rate.
const LONGEST_MEASURED_PAUSE: f64 = 2.0;

/// The longest pause before a trial: in a longer one a window may begin anew. A longer delay is obeyed at once.
const LONGEST_TRIED_PAUSE: Duration = Duration::from_secs(2);
