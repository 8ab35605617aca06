//! The part of a key's state that its provider's answers teach: cool-downs after refusals, reduced
//! limits and their recovery, and the use of the account by others that headers prove.
//!
//! Pure: it owns no lock and reads no clock. It changes the key's [`Limits`], which it is given, and
//! returns what the caller has to report. New kinds of evidence belong here.

mod reduced;
mod reduction;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

pub(crate) use reduced::{Reduced, Step};
pub use reduction::Reduction;
pub(crate) use reduction::{Pace, millionths};
use trace::Trace;

use super::limits::Limits;
use crate::engine::{self, Rule, Shortfall};
use crate::event::RateLimited;
use crate::plan::Plan;
use crate::provider::LimitReading;
use crate::quota::{Cost, Dimension, Limit, Window};
use crate::timestamp::{Timestamp, nanos};

/// The evidence of a provider's answers about one key.
#[derive(Debug, Default)]
pub(crate) struct Adapt {
    /// Until when no request is admitted.
    pub(crate) cooling_until: Timestamp,
    reduced: Option<Box<Reduced>>,
    trace: Option<Box<Trace>>,
}

/// The reaction to a refusal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reaction {
    /// When the cool-down ends.
    pub(crate) until: Timestamp,
    /// True if it reduced the limits.
    pub(crate) is_reduced: bool,
}

/// A limit of the provider's that is lower than the key's.
#[derive(Debug)]
pub(crate) struct LowerLimit {
    pub(crate) dimension: Dimension,
    pub(crate) ours: u64,
    pub(crate) theirs: u64,
}

/// The use of the account by others that the headers of a response prove: amounts, by rule.
pub(crate) type ByOthers = SmallVec<[(usize, u64); 1]>;

impl Adapt {
    /// Returns when something may be sent again. Buckets are carried over as they will be then: one
    /// that was drained for the end of a cool-down lacks no more than it can hold.
    pub(crate) fn sends_at(&self, now: Timestamp) -> Timestamp {
        self.cooling_until.max(now)
    }

    /// Returns whether no cool-down and no reduction is left, at the latest when it is next used.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        let whole = self.reduced.as_ref().is_none_or(|reduced| reduced.is_over(now));
        self.cooling_until <= now && whole
    }

    /// Returns whether requests are admitted as if there were no evidence.
    #[inline]
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.reduced.is_none() && self.cooling_until <= now
    }

    /// Returns whether remaining amounts are compared with those of headers.
    pub(crate) fn has_trace(&self) -> bool {
        self.trace.is_some()
    }

    pub(crate) fn is_reduced(&self) -> bool {
        self.reduced.is_some()
    }

    /// Returns the plan of the key's quota, whatever it is reduced to.
    pub(crate) fn full<'a>(&'a self, limits: &'a Limits) -> &'a Arc<Plan> {
        self.reduced.as_ref().map_or(&limits.plan, |reduced| &reduced.original)
    }

    /// Returns when the key recovers by a step, if it is reduced.
    pub(crate) fn recovers_at(&self) -> Option<Timestamp> {
        self.reduced.as_ref().map(|reduced| reduced.next_at)
    }

    /// Checks whether the buckets hold a cost at `at`, recovery until then included.
    pub(crate) fn check(
        &self,
        limits: &Limits,
        cost: &Cost,
        at: Timestamp,
    ) -> Result<(), Shortfall> {
        let Some(reduced) = self.reduced.as_deref() else {
            return engine::check(&limits.plan.rules, &limits.buckets, cost, at);
        };
        match self.recovered(limits, at) {
            None => reduced.check((&limits.plan.rules, &limits.buckets), cost, at),
            Some(Step { rules, buckets, left: Some(left) }) => {
                left.check((&rules, &buckets), cost, at)
            }
            Some(Step { rules, buckets, left: None }) => engine::check(&rules, &buckets, cost, at),
        }
    }

    /// Returns the limits at `at`, if recovery has changed them by then.
    pub(crate) fn recovered(&self, limits: &Limits, at: Timestamp) -> Option<Step> {
        let due = |reduced: &Reduced| reduced.next_at <= at;
        let first = self.reduced.as_deref().filter(|reduced| due(reduced))?;
        let mut step = first.step(&limits.plan.rules, &limits.buckets);
        while let Some(left) = step.left.take_if(|left| due(left)) {
            step = left.step(&step.rules, &step.buckets);
        }
        Some(step)
    }

    /// Returns whether a step of recovery is due.
    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.reduced.as_ref().is_some_and(|reduced| reduced.next_at <= now)
    }

    /// Recovers as far as is due. Returns whether that ended the reduction.
    #[cold]
    pub(crate) fn recover(&mut self, limits: &mut Limits, now: Timestamp) -> bool {
        let Some(Step { buckets, left, .. }) = self.recovered(limits, now) else { return false };
        let plan = left.as_ref().map_or_else(|| Arc::clone(self.full(limits)), Reduced::plan);
        *limits = Limits { plan, buckets };
        self.reduced = left.map(Box::new);
        self.restart_trace(limits, now);
        self.reduced.is_none()
    }

    /// Gives each limit this amount, if that is less than it has. Returns whether any has less now.
    pub(crate) fn lower(
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

    /// Lowers each rate to the same part of it that `new` is of the capacity, as another program
    /// announced it at `sent_at`.
    pub(crate) fn follow_update(
        &mut self,
        limits: &mut Limits,
        pace: Pace,
        new: u64,
        (sent_at, now): (Timestamp, Timestamp),
    ) {
        let current = capacity(limits);
        self.lower(limits, pace, now, |limit| in_proportion(limit, new, current));
        if let Some(reduced) = self.reduced.as_deref_mut() {
            reduced.heard_at = sent_at;
        }
    }

    /// Returns whether an update that was sent then is no newer than the last that was applied.
    pub(crate) fn is_update_stale(&self, sent_at: Timestamp) -> bool {
        self.reduced.as_ref().is_some_and(|reduced| sent_at <= reduced.heard_at)
    }

    /// Recovers at another pace from now on.
    pub(crate) fn set_pace(&mut self, pace: Pace, now: Timestamp) {
        let from = self.sends_at(now);
        if let Some(reduced) = self.reduced.as_deref_mut() {
            reduced.set_pace(pace, from);
        }
    }

    /// Takes the reduction out, without a change of the limits.
    pub(crate) fn take_reduction(&mut self) -> Option<Box<Reduced>> {
        self.reduced.take()
    }

    /// Puts a reduction back.
    pub(crate) fn put_reduction(&mut self, reduction: Option<Box<Reduced>>) {
        self.reduced = reduction;
    }

    /// Reacts to a refusal by the provider: cools down, reduces the rates and empties their buckets.
    /// `part` spreads the end of the cool-down, in 65,536ths; without a pace only the cool-down
    /// remains.
    pub(crate) fn refuse(
        &mut self,
        limits: &mut Limits,
        refusal: &RateLimited,
        (pace, part): (Option<Pace>, u64),
        now: Timestamp,
    ) -> Reaction {
        let sent_at = refusal.sent_at.unwrap_or(now.saturating_sub(LATENCY));
        let again = self.belongs_to_last(sent_at);
        let before = self.reduced.as_ref().map_or(0, |reduced| reduced.times);
        let delay = refusal.delay(before.saturating_sub(u32::from(again)));
        let until = self.cool_down(delay, (pace, part), now);
        let mut is_reduced = false;
        if let Some(pace) = pace.filter(|_| !refusal.until_reset) {
            let named = refusal.dimension.as_ref().filter(|named| has_rate_of(limits, named));
            is_reduced =
                !again && self.lower(limits, pace, now, |limit| reduced_to(limit, pace, named));
            self.drain(limits, named, until);
        }
        Reaction { until, is_reduced }
    }

    /// Reduces the rates for another reason than a refusal, unless they were a moment ago.
    pub(crate) fn reduce(&mut self, limits: &mut Limits, pace: Pace, now: Timestamp) -> bool {
        let again = self.belongs_to_last(now.saturating_sub(LATENCY));
        !again && self.lower(limits, pace, now, |limit| reduced_to(limit, pace, None))
    }

    /// Starts a cool-down of `delay` and a part of the spread. Returns its end.
    pub(crate) fn cool_down(
        &mut self,
        delay: Duration,
        (pace, part): (Option<Pace>, u64),
        now: Timestamp,
    ) -> Timestamp {
        let longest = pace.map_or(Duration::ZERO, |pace| pace.spread.min(delay / 8));
        let spread = (nanos(longest) >> 16).saturating_mul(part);
        let until = (now + delay).add_nanos(spread);
        self.cooling_until = self.cooling_until.max(until);
        self.cooling_until
    }

    /// Cools down as another program was asked to, with the buckets of all rates empty at the end. Returns
    /// until when.
    pub(crate) fn pause(
        &mut self,
        limits: &mut Limits,
        delay: Duration,
        spread: (Option<Pace>, u64),
        now: Timestamp,
    ) -> Timestamp {
        let until = self.cool_down(delay, spread, now);
        if spread.0.is_some() {
            self.drain(limits, None, until);
        }
        until
    }

    /// Moves the end of the cool-down, if it still is `from`.
    #[cfg(feature = "tower")]
    pub(crate) fn move_cool_down(&mut self, from: Timestamp, to: Timestamp) {
        if self.cooling_until == from {
            self.cooling_until = to;
        }
    }

    /// Admits nothing until then, if that is later than without it: the provider refused a request of
    /// another process. Its buckets are empty then, and so are these. Returns whether it is later.
    pub(crate) fn cool_down_until(
        &mut self,
        limits: &mut Limits,
        until: Timestamp,
        now: Timestamp,
    ) -> bool {
        if until <= self.sends_at(now) {
            return false;
        }
        self.cooling_until = until;
        drain_rates(limits, None, until);
        true
    }

    /// Empties the buckets of all rates, or those of one dimension, at the end of a cool-down: the
    /// provider's are empty. Recovery starts after it.
    pub(crate) fn drain(
        &mut self,
        limits: &mut Limits,
        named: Option<&Dimension>,
        until: Timestamp,
    ) {
        if let Some(reduced) = self.reduced.as_deref_mut() {
            reduced.recover_after(until);
        }
        drain_rates(limits, named, until);
    }

    /// Returns whether a refusal of a request that was sent then was answered by the last reduction.
    fn belongs_to_last(&self, sent_at: Timestamp) -> bool {
        self.reduced.as_ref().is_some_and(|reduced| sent_at <= reduced.reduced_at)
    }

    /// Compares the remaining amounts of a response's headers with those expected, and takes the
    /// difference that others must have used. The first response only starts the comparison.
    pub(crate) fn observe(
        &mut self,
        limits: &mut Limits,
        readings: &[LimitReading],
        granted_at: Timestamp,
        now: Timestamp,
    ) -> (ByOthers, Vec<LowerLimit>) {
        let mut by_others = ByOthers::new();
        match &self.trace {
            None => {
                self.trace = Some(Box::new(Trace::new(limits.plan.rules.len(), now)));
                self.note(limits, now);
            }
            Some(_) => {
                for reading in readings {
                    let used = self.used_by_others(limits, reading, granted_at, now);
                    if let Some((rule, amount)) = used {
                        limits.buckets[rule].charge(&limits.plan.rules[rule], amount, now);
                        self.note(limits, now);
                        by_others.push((rule, amount));
                    }
                }
            }
        }
        (by_others, self.lower_limits(limits, readings))
    }

    /// Returns the amount that others have used of the limit of a reading, if that is proven.
    fn used_by_others(
        &self,
        limits: &Limits,
        reading: &LimitReading,
        granted_at: Timestamp,
        now: Timestamp,
    ) -> Option<(usize, u64)> {
        let index = limits.plan.rules.iter().position(|rule| is_of(rule.limit(), reading))?;
        let left = remaining(reading)?;
        let low = self.trace.as_deref()?.low(index, granted_at)?;
        let (rule, bucket) = (&limits.plan.rules[index], &limits.buckets[index]);
        let allowed = bucket.slack(rule).saturating_add(reading.granularity);
        if left.saturating_add(allowed) >= low {
            return None;
        }
        // The part of the margin that is allowed for is taken with the rest: requests that overtook
        // have arrived by now, and without it refusals would go on until the margin is used up.
        let unproven = bucket.level(rule, now).held.saturating_add(reading.granularity);
        Some((index, (low - left).saturating_sub(unproven)))
    }

    /// Returns the provider's limits that are lower than the key's, unless they were reported.
    fn lower_limits(&mut self, limits: &Limits, readings: &[LimitReading]) -> Vec<LowerLimit> {
        if self.trace.as_ref().is_none_or(|trace| trace.is_lower_reported) {
            return Vec::new();
        }
        let full = self.full(limits);
        let lower = |reading: &LimitReading| {
            let rule = full.rules.iter().find(|rule| is_of(rule.limit(), reading))?;
            let (dimension, ours) = (reading.dimension.clone(), rule.limit().amount());
            let theirs = reading.limit.filter(|theirs| *theirs > 0 && *theirs < ours)?;
            Some(LowerLimit { dimension, ours, theirs })
        };
        let lower: Vec<_> = readings.iter().filter_map(lower).collect();
        if let Some(trace) = &mut self.trace {
            trace.is_lower_reported = !lower.is_empty();
        }
        lower
    }

    /// Starts the comparison with headers anew, if there is one: the limits have changed.
    pub(crate) fn restart_trace(&mut self, limits: &Limits, now: Timestamp) {
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.restart(limits.plan.rules.len(), now);
            trace.note(limits, now);
        }
    }

    /// Notes the amounts left, if they are compared with headers: after they became less.
    #[inline]
    pub(crate) fn note(&mut self, limits: &Limits, now: Timestamp) {
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.note(limits, now);
        }
    }

    /// Moves all times back by as much as the clock was set back.
    pub(crate) fn rebase(&mut self, back: Duration) {
        self.cooling_until = self.cooling_until.saturating_sub(back);
        if let Some(reduced) = &mut self.reduced {
            reduced.rebase(back);
        }
        if let Some(trace) = &mut self.trace {
            trace.rebase(back);
        }
    }
}

/// Returns whether a limit is one that a refusal reduces: not an amount per day or longer.
pub(crate) fn is_rate(limit: &Limit) -> bool {
    *limit.dimension() == Dimension::Concurrency || limit.window() < Window::DAY
}

/// Returns what other programs call the capacity of a key: the amount of its first limit per less than
/// a day, else of requests in flight; 0 where it has neither.
pub(crate) fn capacity(limits: &Limits) -> u64 {
    let rates = || limits.plan.rules.iter().map(Rule::limit).filter(|limit| is_rate(limit));
    let first = rates().find(|limit| *limit.dimension() != Dimension::Concurrency);
    first.or_else(|| rates().next()).map_or(0, Limit::amount)
}

fn has_rate_of(limits: &Limits, dimension: &Dimension) -> bool {
    let mut rates = limits.plan.rules.iter().filter(|rule| is_rate(rule.limit()));
    rates.any(|rule| rule.dimension() == dimension)
}

/// Returns the amount of a limit after a refusal that names this dimension, or none.
fn reduced_to(limit: &Limit, pace: Pace, named: Option<&Dimension>) -> u64 {
    let hit = is_rate(limit) && named.is_none_or(|named| limit.dimension() == named);
    if hit { pace.reduce(limit.amount()) } else { limit.amount() }
}

/// Returns the same part of a limit as `new` is of `current`.
fn in_proportion(limit: &Limit, new: u64, current: u64) -> u64 {
    if !is_rate(limit) {
        return limit.amount();
    }
    let part = u128::from(limit.amount()) * u128::from(new) / u128::from(current.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

fn drain_rates(limits: &mut Limits, named: Option<&Dimension>, until: Timestamp) {
    for (rule, bucket) in limits.iter_mut() {
        if is_rate(rule.limit()) && named.is_none_or(|named| rule.dimension() == named) {
            bucket.drain(rule, until);
        }
    }
}

fn is_of(limit: &Limit, reading: &LimitReading) -> bool {
    *limit.dimension() == reading.dimension
        && limit.window() == reading.window
        && *limit.dimension() != Dimension::Concurrency
}

/// Returns the remaining amount of a reading, unless it contradicts itself.
fn remaining(reading: &LimitReading) -> Option<u64> {
    reading.remaining.filter(|left| reading.limit.is_none_or(|limit| *left <= limit))
}

/// The age of a request whose time of sending isn't known.
const LATENCY: Duration = Duration::from_secs(10);

#[cfg(test)]
#[path = "../../../tests/parts/adapt.rs"]
mod tests;
