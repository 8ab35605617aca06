//! The part of a key's state that follows from its provider's responses: cool-downs after refusals,
//! reduced limits and their recovery, and usage of the account by others that headers show.
//!
//! Pure: it owns no lock and reads no clock. It changes the [`Limits`] that callers pass, and returns
//! the changes to report. New kinds of evidence belong here.

mod circuit;
mod headers;
mod kinds;
mod learned;
mod learning;
mod pacing;
mod rates;
mod reduced;
mod reduction;
mod refill;
mod refusals;
mod shown_burst;
mod trace;
mod utilization;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

pub(crate) use headers::LowerLimit;
use pacing::Controller;
pub(crate) use rates::{capacity, is_rate};
use rates::{drain_rates, has_rate_of, in_proportion, reduced_to};
pub(crate) use reduced::{Reduced, Step};
pub use reduction::Reduction;
pub(crate) use reduction::{KeyPace, Pace, millionths};
use refill::Refill;
pub use refusals::LONGEST_OF_RATE;
use refusals::Refusals;
use trace::Trace;
use windows::{LEARNED_FOR, Windows};

use super::limits::Limits;
use crate::answer::learned::LearnedLimit;
use crate::engine::{self, Rule, Shortfall};
use crate::event::RateLimited;
use crate::plan::Plan;
use crate::quota::{Cost, Dimension, Limit};
use crate::refusal::RefusalKind;
use crate::timestamp::{Timestamp, nanos};

/// The evidence of a provider's responses about one key.
#[derive(Debug, Default)]
pub(crate) struct Adapt {
    /// The end of the last cool-down. No request is admitted before.
    pub(crate) cooling_until: Timestamp,
    /// The refusals of the last minutes, by the requests that were refused.
    refusals: Option<Box<Refusals>>,
    /// The time of the last request while the limits are tested.
    sent_at: Timestamp,
    reduced: Option<Box<Reduced>>,
    controller: Option<Box<Controller>>,
    /// The limits that the test started with, measured by an earlier run or another program.
    initial: Vec<LearnedLimit>,
    /// The time at which the test started with them.
    started_at: Timestamp,
    /// The dimensions of the learned limits that were reported and haven't ended.
    reported: Vec<Dimension>,
    trace: Option<Box<Trace>>,
    /// Evidence about limits of an unknown algorithm.
    refill: Option<Box<Refill>>,
    /// The used parts of the account's windows.
    utilization: Windows,
}

/// The reaction to a refusal.
#[derive(Debug, Default)]
pub(crate) struct Reaction {
    /// The end of the pause of the key; `None` if the refusal concerns no other request.
    pub(crate) until: Option<Timestamp>,
    /// The kind of the refusal that set this end, which may be an earlier one.
    pub(crate) kind: Option<RefusalKind>,
    /// `true` if the account counts as refused from now on, or the server as down.
    pub(crate) is_stopped: bool,
    /// `true` if the refusal reduced the limits.
    pub(crate) is_reduced: bool,
    /// The limits that the refusal has measured.
    pub(crate) learned: Vec<LearnedLimit>,
}

/// State.
impl Adapt {
    /// Returns the time from which requests can be sent. Buckets are carried over at this time, since a
    /// bucket that was emptied for the end of a cool-down would lack more than it can hold before.
    pub(crate) fn sends_at(&self, now: Timestamp) -> Timestamp {
        self.cooling_until.max(now)
    }

    /// Returns whether the key neither cools down nor stays reduced when it is next used.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        let is_whole = self.reduced.as_ref().is_none_or(|reduced| reduced.is_over(now));
        let is_unused = self.controller.is_none() || now - self.sent_at > LEARNED_FOR;
        let is_unused_circuit = |refusals: &Refusals| refusals.circuit.is_idle(now);
        let is_open =
            self.cooling_until <= now && self.refusals.as_deref().is_none_or(is_unused_circuit);
        is_open && is_whole && is_unused && self.utilization.is_idle(now)
    }

    /// Returns whether requests are admitted as if there were no evidence.
    #[inline]
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.reduced.is_none()
            && self.controller.is_none()
            && self.refusals.is_none()
            && self.cooling_until <= now
    }

    /// Returns whether remaining amounts are compared with those of headers.
    pub(crate) fn has_trace(&self) -> bool {
        self.trace.is_some()
    }

    pub(crate) fn is_reduced(&self) -> bool {
        self.reduced.is_some()
    }

    /// Returns the plan of the key's quota, without a reduction.
    pub(crate) fn full_plan<'a>(&'a self, limits: &'a Limits) -> &'a Arc<Plan> {
        self.reduced.as_ref().map_or(&limits.plan, |reduced| &reduced.original)
    }

    /// Checks whether the buckets hold a cost at `at`, after the recovery steps that are due by then.
    pub(crate) fn check(
        &self,
        limits: &Limits,
        cost: &Cost,
        at: Timestamp,
    ) -> Result<(), Shortfall> {
        let Some(reduced) = self.reduced.as_deref() else {
            return self.check_enforced(limits, cost, at);
        };
        match self.recovered(limits, at) {
            None => reduced.check(&limits.plan.rules, &limits.buckets, cost, at),
            Some(Step { rules, buckets, reduced: Some(reduced) }) => {
                reduced.check(&rules, &buckets, cost, at)
            }
            Some(Step { rules, buckets, reduced: None }) => {
                engine::check(&rules, &buckets, cost, at)
            }
        }
    }

    /// Moves all times back by the amount by which the clock was set back.
    pub(crate) fn rebase(&mut self, back: Duration) {
        self.cooling_until = self.cooling_until.saturating_sub(back);
        if let Some(reduced) = &mut self.reduced {
            reduced.rebase(back);
        }
        if let Some(controller) = &mut self.controller {
            controller.rebase(back);
        }
        if let Some(refusals) = &mut self.refusals {
            refusals.rebase(back);
        }
        self.utilization.rebase(back);
        self.started_at = self.started_at.saturating_sub(back);
        for limit in &mut self.initial {
            limit.measured_at = limit.measured_at.saturating_sub(back);
        }
        if let Some(trace) = &mut self.trace {
            trace.rebase(back);
        }
        if let Some(refill) = &mut self.refill {
            refill.rebase(back);
        }
    }
}

/// Recovery.
impl Adapt {
    /// Returns the time of the next recovery step, if the key is reduced.
    pub(crate) fn recovers_at(&self) -> Option<Timestamp> {
        self.reduced.as_ref().map(|reduced| reduced.next_at)
    }

    /// Returns the limits at `at`, if recovery changes them by then.
    pub(crate) fn recovered(&self, limits: &Limits, at: Timestamp) -> Option<Step> {
        let is_due = |reduced: &Reduced| reduced.next_at <= at;
        let first = self.reduced.as_deref().filter(|reduced| is_due(reduced))?;
        let mut step = first.step(&limits.plan.rules, &limits.buckets);
        while let Some(reduced) = step.reduced.take_if(|reduced| is_due(reduced)) {
            step = reduced.step(&step.rules, &step.buckets);
        }
        Some(step)
    }

    /// Returns whether a recovery step is due.
    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.reduced.as_ref().is_some_and(|reduced| reduced.next_at <= now)
    }

    /// Takes the recovery steps that are due. Returns whether that ended the reduction.
    #[cold]
    pub(crate) fn recover(&mut self, limits: &mut Limits, now: Timestamp) -> bool {
        let Some(Step { buckets, reduced, .. }) = self.recovered(limits, now) else {
            return false;
        };
        let full = || Arc::clone(self.full_plan(limits));
        let plan = reduced.as_ref().map_or_else(full, Reduced::plan);
        *limits = Limits { plan, buckets };
        self.reduced = reduced.map(Box::new);
        self.restart_trace(limits, now);
        self.reduced.is_none()
    }

    /// Sets the pace of recovery from now on.
    pub(crate) fn set_pace(&mut self, pace: Pace, now: Timestamp) {
        let from = self.sends_at(now);
        if let Some(reduced) = self.reduced.as_deref_mut() {
            reduced.set_pace(pace, from);
        }
    }

    /// Takes the reduction out without changing the limits.
    pub(crate) fn take_reduction(&mut self) -> Option<Box<Reduced>> {
        self.reduced.take()
    }

    /// Puts a reduction back.
    pub(crate) fn put_reduction(&mut self, reduction: Option<Box<Reduced>>) {
        self.reduced = reduction;
    }
}

/// Reduction.
impl Adapt {
    /// Reacts to a refusal by the provider: cools down, reduces the rates and empties their buckets.
    /// Without a pace it only cools down.
    pub(super) fn refuse(
        &mut self,
        limits: &mut Limits,
        refusal: &RateLimited,
        key_pace: KeyPace,
        now: Timestamp,
    ) -> Reaction {
        let sent_at = refusal.sent_at.unwrap_or(now.saturating_sub(LATENCY));
        let is_repeated = self.precedes_reduction(sent_at);
        let before = self.reduced.as_ref().map_or(0, |reduced| reduced.reductions);
        let delay = refusal.delay(before.saturating_sub(u32::from(is_repeated)));
        let until = self.cool_down(delay, key_pace, now);
        let mut is_reduced = false;
        let is_rate = refusal.refusal.kind == RefusalKind::Rate;
        if let Some(pace) = key_pace.pace.filter(|_| is_rate) {
            let named =
                refusal.refusal.dimension.as_ref().filter(|named| has_rate_of(limits, named));
            is_reduced = !is_repeated
                && self.lower(limits, pace, now, |limit| reduced_to(limit, pace, named));
            self.drain(limits, named, until);
        }
        Reaction { until: Some(until), is_reduced, ..Reaction::default() }
    }

    /// Reduces the rates for a reason other than a refusal, unless they were reduced a moment ago.
    pub(crate) fn reduce(&mut self, limits: &mut Limits, pace: Pace, now: Timestamp) -> bool {
        let is_repeated = self.precedes_reduction(now.saturating_sub(LATENCY));
        !is_repeated && self.lower(limits, pace, now, |limit| reduced_to(limit, pace, None))
    }

    /// Reduces each rate in the proportion of `new` to the current capacity, as another program
    /// announced at `sent_at`.
    pub(crate) fn follow_update(
        &mut self,
        limits: &mut Limits,
        pace: Pace,
        new: u64,
        sent_at: Timestamp,
        now: Timestamp,
    ) {
        let current = capacity(limits);
        self.lower(limits, pace, now, |limit| in_proportion(limit, new, current));
        if let Some(reduced) = self.reduced.as_deref_mut() {
            reduced.update_sent_at = sent_at;
        }
    }

    /// Returns whether an update sent at `sent_at` is no newer than the last one applied.
    pub(crate) fn is_update_stale(&self, sent_at: Timestamp) -> bool {
        self.reduced.as_ref().is_some_and(|reduced| sent_at <= reduced.update_sent_at)
    }

    /// Lowers each limit to this amount if that is less than the current one. Returns whether a limit
    /// became lower.
    fn lower(
        &mut self,
        limits: &mut Limits,
        pace: Pace,
        now: Timestamp,
        amount: impl Fn(&Limit) -> u64,
    ) -> bool {
        let lower = |rule: &Rule| amount(rule.limit()).clamp(1, rule.limit().amount());
        let amounts: SmallVec<[u64; 3]> = limits.plan.rules.iter().map(lower).collect();
        if limits.plan.rules.iter().map(|rule| rule.limit().amount()).eq(amounts.iter().copied()) {
            return false;
        }
        let from = self.sends_at(now);
        let mut reduced = Reduced::new(self.reduced.as_deref(), limits, pace, amounts, now);
        reduced.recover_after(from);
        *limits = limits.resized(reduced.plan(), from);
        self.reduced = Some(Box::new(reduced));
        self.restart_trace(limits, now);
        true
    }

    /// Returns whether a request sent at `sent_at` was sent before the last reduction, which already
    /// covers its refusal.
    fn precedes_reduction(&self, sent_at: Timestamp) -> bool {
        self.reduced.as_ref().is_some_and(|reduced| sent_at <= reduced.reduced_at)
    }
}

/// Cool-downs.
impl Adapt {
    /// Starts a cool-down of `delay` and a part of the spread. Returns its end.
    fn cool_down(&mut self, delay: Duration, key_pace: KeyPace, now: Timestamp) -> Timestamp {
        let KeyPace { pace, spread_part } = key_pace;
        let longest = pace.map_or(Duration::ZERO, |pace| pace.spread.min(delay / 8));
        let spread = (nanos(longest) >> 16).saturating_mul(spread_part);
        let until = (now + delay).add_nanos(spread);
        self.cooling_until = self.cooling_until.max(until);
        self.cooling_until
    }

    /// Applies a cool-down of another program, and empties the buckets of all rates at its end. Returns
    /// the end.
    pub(crate) fn pause(
        &mut self,
        limits: &mut Limits,
        delay: Duration,
        key_pace: KeyPace,
        now: Timestamp,
    ) -> Timestamp {
        let until = self.cool_down(delay, key_pace, now);
        if key_pace.pace.is_some() {
            self.drain(limits, None, until);
        }
        until
    }

    /// Moves the end of the cool-down from `from` to `to`, unless it has changed.
    pub(crate) fn move_cool_down(&mut self, from: Timestamp, to: Timestamp) {
        if self.cooling_until == from {
            self.cooling_until = to;
        }
    }

    /// Applies a cool-down that another process reports, with the kind of its refusal: the buckets of all rates are empty
    /// at its end. Returns `false`, and changes nothing, if the key already cools down for that long.
    pub(crate) fn cool_down_until(
        &mut self,
        limits: &mut Limits,
        until: Timestamp,
        kind: Option<RefusalKind>,
        now: Timestamp,
    ) -> bool {
        if until <= self.sends_at(now) {
            return false;
        }
        self.cooling_until = until;
        if let Some(kind) = kind {
            self.refusals.get_or_insert_default().started_cool_down(until, kind);
        }
        drain_rates(limits, None, until);
        true
    }

    /// Empties the buckets of all rates, or of one dimension, at the end of a cool-down, since the
    /// provider's buckets are empty. Recovery starts after it.
    fn drain(&mut self, limits: &mut Limits, named: Option<&Dimension>, until: Timestamp) {
        if let Some(reduced) = self.reduced.as_deref_mut() {
            reduced.recover_after(until);
        }
        drain_rates(limits, named, until);
    }
}

/// The assumed age of a request whose time of sending isn't known.
const LATENCY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
