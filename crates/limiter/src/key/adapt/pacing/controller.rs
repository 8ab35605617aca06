use std::time::Duration;

use super::chance::Chances;
use super::column::ConfiguredRate;
use super::columns::Columns;
use super::in_flight::InFlight;
use super::last_event::LastEvent;
use super::pause::{Pause, Probe};
use super::reaction::Blocked;
use super::send_log::{SendLog, SentRequest};
use super::slow_start::SlowStart;
use super::trial::Trials;
use super::units::{add_to_mean, seconds_between};
use crate::engine::Wait;
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// The pacing of one key by what its provider answers.
///
/// The key's buckets enforce configured limits beside it. A request is identified by its time of sending:
/// [`sent`](Self::sent), then at most one of [`accepted`](Self::accepted), [`refused`](Self::refused) and
/// [`set_aside`](Self::set_aside), then [`ended`](Self::ended); or [`returned`](Self::returned) alone.
#[derive(Debug)]
pub(crate) struct Controller {
    pub(super) columns: Columns,
    /// `None` after the first event, or after the end of the start.
    pub(super) slow_start: Option<SlowStart>,
    pub(super) in_flight: InFlight,
    pub(super) pause: Pause,
    log: SendLog,
    pub(super) last: LastEvent,
    pub(super) chances: Chances,
    pub(super) trials: Trials,
    /// Requests sent before are unknown.
    began: Timestamp,
    /// Requests accepted.
    accepted: u64,
    /// The mean latency of recent answers in seconds.
    latency: f64,
    /// The mean latency of recent refusals in seconds.
    pub(super) refusal_latency: f64,
    pub(super) events: u64,
}

/// Creation.
impl Controller {
    /// Creates the controller of a key whose limits are unconfirmed.
    pub(crate) fn new(
        configured: impl IntoIterator<Item = ConfiguredRate>,
        now: Timestamp,
    ) -> Self {
        let columns = Columns::new(configured);
        let requests = columns.configured().filter(|rate| rate.dimension == Dimension::Requests);
        let slow_start = SlowStart::new(requests.map(|rate| rate.per_second).reduce(f64::min), now);
        Self {
            columns,
            slow_start: Some(slow_start),
            in_flight: InFlight::default(),
            pause: Pause::new(),
            log: SendLog::default(),
            last: LastEvent::default(),
            chances: Chances::new(),
            trials: Trials::default(),
            began: now,
            accepted: 0,
            latency: 0.0,
            refusal_latency: 0.0,
            events: 0,
        }
    }

    /// Creates the controller of a key whose limits were confirmed, before its first later refusal is passed
    /// to [`refused`](Self::refused). Its first rate is half of the configured one.
    pub(crate) fn after_confirmed(
        configured: impl IntoIterator<Item = ConfiguredRate>,
        now: Timestamp,
    ) -> Self {
        Self { slow_start: None, ..Self::new(configured, now) }
    }
}

/// Requests.
impl Controller {
    /// Checks whether a request can be sent at `at`. Changes nothing.
    ///
    /// # Errors
    ///
    /// The learned limit with the longest wait. The request is admitted at the time of its wait if no answer
    /// arrives and no other request is sent before.
    pub(crate) fn check(&self, cost: &Cost, at: Timestamp) -> Result<(), Blocked<'_>> {
        let is_probed = matches!(self.pause.probe, Some(Probe::Sent(_)));
        if is_probed || self.in_flight.is_full() || self.has_unconfirmed_requests() {
            return Err(Blocked { dimension: None, wait: Wait::Unknown });
        }
        let started = self.slow_start.as_ref().map_or(at, SlowStart::ready_at);
        let open = self.pause.until.max(started);
        let tried = self.trials.ready_at(open.max(at));
        let open = tried.unwrap_or(open);
        let paced = if self.pause.is_test_due() || tried.is_some() {
            None
        } else {
            self.columns.ready_at(cost)
        };
        let (time, dimension) = match paced {
            Some((paced, dimension)) if paced > open => (paced, Some(dimension)),
            _ => (open, None),
        };
        if time <= at { Ok(()) } else { Err(Blocked { dimension, wait: Wait::At(time) }) }
    }

    /// Counts a request that is sent now.
    pub(crate) fn sent(&mut self, cost: &Cost, now: Timestamp) {
        self.columns.add(cost);
        self.in_flight.now = self.in_flight.now.saturating_add(1);
        let before = self.columns.sums();
        self.columns.send(cost, now);
        self.trials.sent(&before, &self.columns.sums(), now);
        let (number, beside) = (self.columns.requests(), self.in_flight.now);
        let is_growing = self.slow_start.is_some() || self.columns.is_growing();
        self.chances.sent(is_growing);
        self.log.push(SentRequest { at: now, before, number, beside, is_growing });
        self.pause.sent(now);
        if let Some(slow_start) = &mut self.slow_start {
            slow_start.take(self.latency, now);
        }
        if self.has_passed_configured() {
            self.slow_start = None;
        }
    }

    /// Counts a request as no longer in flight: its response has ended, or it was refused or has failed.
    pub(crate) fn ended(&mut self, sent_at: Timestamp) {
        if sent_at < self.began {
            return;
        }
        self.in_flight.now = self.in_flight.now.saturating_sub(1);
        if self.log.end(sent_at) {
            self.pause.unanswered(sent_at);
        }
    }

    /// Takes back a request that was admitted and never sent. It isn't passed to [`ended`](Self::ended).
    pub(crate) fn returned(&mut self, cost: &Cost, sent_at: Timestamp) {
        if sent_at < self.began {
            return;
        }
        let sent = self.answered(sent_at, true);
        self.in_flight.now = self.in_flight.now.saturating_sub(1);
        self.pause.unanswered(sent_at);
        self.trials.returned(sent_at);
        self.exclude(&sent, cost);
        self.columns.put_back(cost);
        if let Some(slow_start) = &mut self.slow_start {
            slow_start.put_back();
        }
    }

    /// Moves all times back by the amount by which the clock was set back.
    pub(crate) fn rebase(&mut self, back: Duration) {
        self.began = self.began.saturating_sub(back);
        self.last.reacted = self.last.reacted.map(|reacted| reacted.saturating_sub(back));
        self.log.rebase(back);
        self.pause.rebase(back);
        self.in_flight.rebase(back);
        self.columns.rebase(back);
        self.trials.rebase(back);
        self.chances.rebase(back);
        if let Some(slow_start) = &mut self.slow_start {
            slow_start.rebase(back);
        }
    }
}

/// Answers.
impl Controller {
    /// Notes that the provider's limits accepted a request.
    pub(crate) fn accepted(&mut self, sent_at: Timestamp, now: Timestamp) {
        if sent_at < self.began {
            return;
        }
        let sent = self.answered(sent_at, false);
        self.accepted = self.accepted.saturating_add(1);
        add_to_mean(&mut self.latency, seconds_between(sent_at, now));
        let is_new = self.is_new(sent_at);
        let beside = if is_new { sent.beside } else { 0 };
        if self.in_flight.accepted(sent_at, beside, self.latency, now) {
            self.columns.resume(now, now);
        }
        if is_new && let Some(closure) = self.pause.accepted(sent_at) {
            self.columns.open_again(&closure, &sent, now);
        }
        if is_new && let Some((is_named, passed)) = self.trials.accepted(sent_at) {
            self.pass_trial(is_named, passed, now);
        }
    }

    /// Takes back a request that was refused for another reason than a rate, and used nothing of the limits. It is
    /// passed to [`ended`](Self::ended).
    pub(crate) fn set_aside(&mut self, sent_at: Timestamp, cost: &Cost) {
        if sent_at < self.began {
            return;
        }
        let sent = self.answered(sent_at, true);
        self.pause.unanswered(sent_at);
        self.trials.set_aside(sent_at);
        self.exclude(&sent, cost);
    }
}

/// State.
impl Controller {
    /// Returns `true` if the configured limits have proved to be sufficient: nothing here limits requests, and
    /// no limit is a starting point.
    pub(crate) fn is_confirmed(&self, now: Timestamp) -> bool {
        self.is_unneeded(now)
            && self.chances.is_quiet(now)
            && self.columns.configured().all(|configured| configured.is_ceiling)
    }

    /// Returns `true` if nothing here holds requests back: the start is over, and no rate or cap was learned.
    pub(crate) fn is_unneeded(&self, now: Timestamp) -> bool {
        self.slow_start.is_none()
            && self.has_configured()
            && self.in_flight.cap().is_none()
            && self.pause.is_over(now)
            && self.columns.iter().all(|column| column.pace.is_none())
    }

    /// Returns `true` if a learned rate replaces the configured limit of a dimension, which then isn't
    /// enforced.
    pub(crate) fn replaces(&self, dimension: &Dimension) -> bool {
        self.columns.iter().any(|column| {
            let is_ceiling =
                column.configured.as_ref().is_some_and(|configured| configured.is_ceiling);
            column.dimension == *dimension && column.pace.is_some() && !is_ceiling
        })
    }

    /// Returns the number of events: refusals that weren't the consequence of an earlier one.
    #[cfg(test)]
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Returns the charges of a dimension from the start up to the request that was sent at this time; `None` if
    /// it was answered before.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub(crate) fn sent_until(&self, dimension: &Dimension, sent_at: Timestamp) -> Option<u64> {
        let column = self.columns.iter().position(|column| column.dimension == *dimension)?;
        let sums = self.columns.sums();
        self.log.until(sent_at, &sums)?.get(column).map(|sum| sum.ceil() as u64)
    }

    pub(super) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns the sums and rates, to continue with saved ones instead of a slow start.
    pub(super) fn skip_slow_start(&mut self) -> &mut Columns {
        self.slow_start = None;
        &mut self.columns
    }

    pub(super) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    fn has_configured(&self) -> bool {
        self.columns.configured().next().is_some()
    }

    /// Returns whether requests of a slow start without configured limits wait for answers.
    fn has_unconfirmed_requests(&self) -> bool {
        self.slow_start.is_some()
            && !self.has_configured()
            && u64::from(self.in_flight.now) >= UNCONFIRMED + 2 * self.accepted
    }

    fn has_passed_configured(&self) -> bool {
        let Some(slow_start) = &self.slow_start else { return false };
        let has_passed = |rate: &ConfiguredRate| {
            slow_start.has_passed(rate, self.columns.mean_cost(&rate.dimension))
        };
        self.has_configured() && self.columns.configured().all(has_passed)
    }

    pub(super) fn is_new(&self, sent_at: Timestamp) -> bool {
        self.last.reacted.is_none_or(|reacted| sent_at > reacted)
    }

    /// Marks a request as answered. One that the log doesn't know is assumed to be the latest.
    pub(super) fn answered(&mut self, sent_at: Timestamp, is_refused: bool) -> SentRequest {
        let sums = self.columns.sums();
        self.log.answer(sent_at, is_refused, &sums).unwrap_or(SentRequest {
            at: sent_at,
            before: sums,
            number: self.columns.requests(),
            beside: self.in_flight.now,
            is_growing: self.slow_start.is_some() || self.columns.is_growing(),
        })
    }

    /// Takes a request that used nothing of the limits off the sums.
    pub(super) fn exclude(&mut self, sent: &SentRequest, cost: &Cost) {
        self.columns.exclude(cost, sent.number);
        if self.last.number.is_none_or(|last| sent.number > last) {
            self.last.refusals = self.last.refusals.saturating_add(1);
        }
    }
}

/// Requests in flight that a slow start without configured limits allows before any is accepted.
const UNCONFIRMED: u64 = 32;
