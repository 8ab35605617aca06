use std::sync::Arc;

use super::KeyState;
use crate::answer::learned::{LearnedFrom, LearnedLimit};
use crate::answer::utilization::Utilization;
use crate::engine::Rule;
use crate::key::adapt::{self, Adapt, LowerLimit, Pace};
use crate::key::limits::Limits;
use crate::quota::Dimension;
use crate::refusal::{Refusal, RefusalKind};
use crate::stated::{LimitReading, UtilizationReading};
use crate::timestamp::Timestamp;

/// The result of a comparison with the headers of a response.
#[derive(Debug)]
pub(crate) struct Observed {
    /// The provider's limits that are lower than the key's.
    pub(crate) lower_limits: Vec<LowerLimit>,
    /// `true` once the headers have shown that limits of an unknown algorithm are buckets.
    pub(crate) shows_refill: bool,
}

/// Evidence of the provider's limits: cool-downs, reductions and response headers.
impl KeyState {
    /// Takes the recovery steps that are due. Returns whether that ended the reduction.
    #[inline]
    pub(crate) fn recover(&mut self) -> bool {
        let now = self.now();
        match self {
            Self { limits, extra: Some(extra), .. } if extra.adapt.is_due(now) => {
                extra.adapt.recover(limits, now)
            }
            _ => false,
        }
    }

    /// Changes the evidence, and with it the limits. Wakes all waiting requests, since some may now miss
    /// their deadlines.
    pub(crate) fn adapt<T>(
        &mut self,
        change: impl FnOnce(&mut Adapt, &mut Limits, Timestamp) -> T,
    ) -> T {
        let now = self.now();
        let Self { limits, extra, .. } = self;
        let extra = extra.get_or_insert_default();
        let changed = change(&mut extra.adapt, limits, now);
        extra.adapt.note(limits, now);
        extra.wakers.wake(extra.queue.request_wakers());
        changed
    }

    /// Changes the evidence as [`adapt`](Self::adapt) does, and records the end of the cool-down and the
    /// learned limits for other processes.
    pub(crate) fn adapt_and_record<T>(
        &mut self,
        change: impl FnOnce(&mut Adapt, &mut Limits, Timestamp) -> T,
    ) -> T {
        let changed = self.adapt(change);
        let until = self.cooling_until();
        if let Some(journal) = self.extra.as_mut().and_then(|extra| extra.journal.as_deref_mut()) {
            journal.cooling(until);
        }
        if self.evidence().is_some_and(Adapt::has_reported) {
            self.record_learned();
        }
        changed
    }

    /// Records the learned limits for a store.
    fn record_learned(&mut self) {
        let now = self.now();
        let Some(extra) = &mut self.extra else { return };
        if let Some(journal) = &mut extra.journal {
            journal.learned(extra.adapt.learned(now));
        }
    }

    /// Returns whether a provider's answers have confirmed the limits.
    #[inline]
    pub(crate) fn has_confirmed_limits(&self) -> bool {
        self.is_confirmed
    }

    /// Starts to test the limits by a provider's answers, unless they are confirmed. Requests that can't wait
    /// aren't held back until something is known: their limits count as confirmed until a refusal.
    pub(crate) fn start_learning(&mut self, can_wait: bool) {
        let now = self.now();
        if !can_wait && !self.is_learning() {
            self.is_confirmed = true;
        }
        if !self.is_confirmed {
            let Self { limits, extra, .. } = self;
            extra.get_or_insert_default().adapt.start_learning(limits, now);
        }
    }

    /// Returns whether the limiter has something to do when a reservation ends.
    #[inline]
    pub(crate) fn has_end(&self) -> bool {
        self.limits.plan.holds || self.has_tests()
    }

    /// Returns whether the answers to requests that are sent now are reported to the key.
    #[inline]
    pub(crate) fn has_tests(&self) -> bool {
        self.evidence().is_some_and(|adapt| adapt.is_learning() || adapt.has_refusals())
    }

    /// Returns whether the limits are being tested by a provider's answers.
    #[inline]
    pub(crate) fn is_learning(&self) -> bool {
        self.evidence().is_some_and(Adapt::is_learning)
    }

    /// Returns whether a request has to wait alone before it is sent again.
    pub(crate) fn waits_alone(&self, request: u64) -> bool {
        self.evidence().is_none_or(|adapt| adapt.waits_alone(request, self.now()))
    }

    /// Returns the learned limits.
    pub(crate) fn learned(&self) -> Vec<LearnedLimit> {
        self.evidence().map(|adapt| adapt.learned(self.now())).unwrap_or_default()
    }

    /// Notes that a request has no answer, so that its end shows nothing.
    pub(crate) fn on_unanswered(&mut self, sent_at: Timestamp) {
        if let Some(extra) = &mut self.extra {
            extra.adapt.on_unanswered(sent_at);
        }
    }

    /// Learns from a request that the provider accepted. Returns the dimensions of reported limits that have
    /// ended.
    pub(crate) fn on_accepted(&mut self, sent_at: Timestamp) -> Vec<Dimension> {
        let now = self.now();
        let Some(extra) = &mut self.extra else { return Vec::new() };
        extra.adapt.on_accepted(sent_at, now);
        let mut ended = extra.adapt.take_ended(now);
        if extra.adapt.take_confirmed(now) {
            ended.extend(extra.adapt.take_ended(now));
            self.is_confirmed = true;
            self.wake_all();
        }
        if !ended.is_empty() {
            self.record_learned();
        }
        self.notify_change();
        ended
    }

    /// Starts with limits that an earlier run or another program has measured, unless newer ones are known.
    pub(crate) fn start_with(&mut self, learned: &[LearnedLimit]) {
        self.adapt(|adapt, limits, now| adapt.start_with(limits, learned, now));
    }

    /// Starts with limits that another program has measured. Returns whether any was taken: not if a key's
    /// own answers have measured its limits, or if no provider answers its requests.
    pub(crate) fn follow_learned(&mut self, learned: &[LearnedLimit]) -> bool {
        if !self.is_learning() && !self.is_confirmed {
            return false;
        }
        self.adapt(|adapt, limits, now| {
            let own = adapt.learned(now);
            let is_measured = |limit: &LearnedLimit| {
                let of_dimension = own.iter().find(|own| own.dimension == limit.dimension);
                of_dimension.is_some_and(|own| own.source == LearnedFrom::Answers)
            };
            let unknown: Vec<_> =
                learned.iter().filter(|limit| !is_measured(limit)).cloned().collect();
            adapt.start_with(limits, &unknown, now)
        })
    }

    /// Returns the used parts of the account's windows.
    pub(crate) fn utilization(&self) -> Vec<Utilization> {
        let held_to = self.full_plan().terms.utilization();
        let of = |adapt: &Adapt| adapt.utilization(held_to, self.now());
        self.evidence().map(of).unwrap_or_default()
    }

    /// Records the used parts of the account's windows. Returns the end of the cool-down that they start.
    pub(crate) fn see_utilization(&mut self, readings: &[UtilizationReading]) -> Option<Timestamp> {
        let held_to = self.full_plan().terms.utilization();
        let now = self.now();
        let until = if held_to.is_none() {
            let extra = self.extra.get_or_insert_default();
            extra.adapt.see_utilization(readings, held_to, now)
        } else {
            self.adapt_and_record(|adapt, _, now| adapt.see_utilization(readings, held_to, now))
        };
        let extra = self.extra.get_or_insert_default();
        if let Some(journal) = &mut extra.journal {
            journal.utilization(extra.adapt.utilization(None, now));
        }
        until
    }

    /// Returns the evidence, if the key may have some.
    pub(crate) fn evidence(&self) -> Option<&Adapt> {
        self.extra.as_ref().map(|extra| &extra.adapt)
    }

    /// Sets the pace of recovery; `None` ends the reduction.
    pub(crate) fn set_pace(&mut self, pace: Option<Pace>) {
        let now = self.now();
        let reduced = self.extra.as_mut().filter(|extra| extra.adapt.is_reduced());
        let Some(extra) = reduced else { return };
        match pace {
            Some(pace) => extra.adapt.set_pace(pace, now),
            None => self.end_reduction(),
        }
        self.wake_all();
    }

    /// Ends a reduction, as if the key had recovered.
    pub(super) fn end_reduction(&mut self) {
        if self.evidence().is_some_and(Adapt::is_reduced) {
            let full = Arc::clone(self.full_plan());
            self.follow(full);
        }
    }

    /// Compares the remaining amounts of a response's headers with the expected ones. `round` is the
    /// current round of the list of dirty keys.
    pub(crate) fn observe(
        &mut self,
        readings: &[LimitReading],
        granted_at: Timestamp,
        round: u64,
    ) -> Observed {
        let now = self.now();
        let (limits, extra) = (&mut self.limits, self.extra.get_or_insert_default());
        let shown = extra.adapt.observe(limits, readings, granted_at, now);
        if let Some(journal) = &mut extra.journal {
            for (rule, amount) in shown.by_others {
                journal.used_by_others(rule, amount, round);
            }
        }
        let shows_refill =
            limits.plan.assumes_windows && extra.adapt.shows_refill(readings, granted_at, now);
        if shown.has_returned {
            self.notify_change();
        }
        Observed { lower_limits: shown.lower_limits, shows_refill }
    }

    /// Replaces the usage by that in the headers of a response.
    pub(crate) fn restart_from(&mut self, readings: &[LimitReading]) {
        for (rule, bucket) in self.limits.iter_mut() {
            let is_stated = |reading: &LimitReading| is_stated_by(rule, reading);
            if readings.iter().any(is_stated) {
                *bucket = bucket.cleared(rule);
            }
        }
        self.charge_past(readings);
        self.notify_change();
    }

    /// Charges the usage that the headers of a response state.
    pub(crate) fn charge_past(&mut self, readings: &[LimitReading]) {
        let now = self.now();
        for reading in readings {
            let (Some(limit), Some(remaining)) = (reading.limit, reading.remaining) else {
                continue;
            };
            let stated = self.limits.iter_mut().filter(|(rule, _)| is_stated_by(rule, reading));
            for (rule, bucket) in stated {
                bucket.charge_past(rule, limit.saturating_sub(remaining), now);
            }
        }
        self.record(|_, _, _| {});
    }

    /// Returns the time of the next recovery step, if the key is reduced.
    pub(crate) fn recovers_at(&self) -> Option<Timestamp> {
        self.evidence()?.recovers_at()
    }

    /// Returns the provider's refusal of the account, if it refuses that.
    pub(crate) fn account_refusal(&self) -> Option<&Arc<Refusal>> {
        self.evidence()?.account_refusal()
    }

    /// Returns the end of the present cool-down.
    pub(super) fn cools_until(&self) -> Option<Timestamp> {
        Some(self.cooling_until()).filter(|&until| until > self.now())
    }

    /// Returns the kind of the refusal that started the present cool-down, if it is known.
    pub(super) fn cooling_kind(&self) -> Option<RefusalKind> {
        self.evidence()?.cool_down_kind(self.cools_until()?)
    }

    /// Returns the end of the last cool-down; the Unix epoch if there was none.
    pub(crate) fn cooling_until(&self) -> Timestamp {
        self.evidence().map_or(Timestamp::UNIX_EPOCH, |adapt| adapt.cooling_until)
    }

    /// Returns the capacity of the key, as reported to other programs.
    pub(crate) fn capacity(&self) -> u64 {
        adapt::capacity(&self.limits)
    }
}

/// Returns whether a reading states the limit of a rule, and what remains of it.
fn is_stated_by(rule: &Rule, reading: &LimitReading) -> bool {
    *rule.dimension() == reading.dimension
        && rule.limit().window() == reading.window
        && reading.limit.is_some()
        && reading.remaining.is_some()
}
