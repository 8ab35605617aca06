use std::time::Duration;

use smallvec::SmallVec;

use super::refill::Refill;
use super::{Adapt, Trace};
use crate::engine::Rule;
use crate::key::limits::Limits;
use crate::quota::{Dimension, Limit};
use crate::stated::LimitReading;
use crate::timestamp::Timestamp;

/// A limit of the provider that is lower than the key's.
#[derive(Debug)]
pub(crate) struct LowerLimit {
    pub(crate) dimension: Dimension,
    pub(crate) ours: u64,
    pub(crate) theirs: u64,
}

/// Usage of the account by others that the headers of a response show: amounts, by rule.
type UsageByOthers = SmallVec<[(usize, u64); 1]>;

/// What the headers of a response show.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) by_others: UsageByOthers,
    pub(crate) lower_limits: Vec<LowerLimit>,
    /// `true` if an amount that was withheld is available again.
    pub(crate) has_returned: bool,
}

/// Comparison with the headers of responses.
impl Adapt {
    /// Compares the remaining amounts of a response's headers with the expected ones, and charges the
    /// difference that others must have used. The first response only starts the comparison.
    pub(crate) fn observe(
        &mut self,
        limits: &mut Limits,
        readings: &[LimitReading],
        granted_at: Timestamp,
        now: Timestamp,
    ) -> Shown {
        let mut by_others = UsageByOthers::new();
        match &self.trace {
            None => {
                self.trace = Some(Box::new(Trace::new(limits.plan.rules.len(), now)));
                self.note(limits, now);
            }
            Some(_) => {
                for reading in readings {
                    let used = self.used_by_others(limits, reading, granted_at, now);
                    if let Some((rule, amount)) = used {
                        limits.buckets[rule].charge_past(&limits.plan.rules[rule], amount, now);
                        self.note(limits, now);
                        by_others.push((rule, amount));
                    }
                }
            }
        }
        let mut has_returned = false;
        for reading in readings {
            has_returned |= self.see_burst(limits, reading, granted_at, now) > 0;
        }
        Shown { by_others, lower_limits: self.lower_limits(limits, readings), has_returned }
    }

    /// Notes the burst that the headers of a response show, and returns to its bucket what was withheld of it.
    /// Returns that amount.
    fn see_burst(
        &mut self,
        limits: &mut Limits,
        reading: &LimitReading,
        granted_at: Timestamp,
        now: Timestamp,
    ) -> u64 {
        let Some((index, left)) = rule_of(limits, reading).zip(remaining(reading)) else {
            return 0;
        };
        let Some(trace) = self.trace.as_deref_mut() else { return 0 };
        let (rule, bucket) = (&limits.plan.rules[index], &mut limits.buckets[index]);
        let lowest = trace.lowest_since(index, granted_at);
        let Some(burst) = trace.burst_mut(index) else { return 0 };
        let used = || {
            let own = self.controller.as_deref();
            let own = own.and_then(|own| own.sent_until(rule.dimension(), granted_at));
            let used = rule.capacity().saturating_sub(bucket.left(rule, now));
            own.unwrap_or_else(|| used.saturating_add(refill(rule, now - granted_at)))
        };
        burst.see(rule, left.saturating_add(reading.granularity), used);
        let shown = lowest.map_or(0, |lowest| burst.take_shown(left, lowest, granted_at));
        bucket.apply(rule, now, i64::try_from(shown).map_or(i64::MIN, |shown| -shown), now);
        shown
    }

    /// Withholds what buckets hold beyond the bursts that headers have shown.
    #[inline]
    pub(crate) fn withhold_unseen(&mut self, limits: &mut Limits, now: Timestamp) {
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.withhold(limits, now);
        }
    }

    /// Returns the amount of a reading's limit that others must have used, with the limit's rule.
    fn used_by_others(
        &self,
        limits: &Limits,
        reading: &LimitReading,
        granted_at: Timestamp,
        now: Timestamp,
    ) -> Option<(usize, u64)> {
        let index = rule_of(limits, reading)?;
        let left = remaining(reading)?;
        let lowest = self.trace.as_deref()?.lowest_since(index, granted_at)?;
        let (rule, bucket) = (&limits.plan.rules[index], &limits.buckets[index]);
        let allowed = bucket.slack(rule).saturating_add(reading.granularity);
        if left.saturating_add(allowed) >= lowest {
            return None;
        }
        // The part of the margin that was allowed for is charged too: requests that overtook this one
        // have arrived by now, and without that part the provider would refuse requests until the
        // margin is used up.
        let unproven = bucket.level(rule, now).held.saturating_add(reading.granularity);
        Some((index, (lowest - left).saturating_sub(unproven)))
    }

    /// Returns the provider's limits that are lower than the key's, if none was reported before.
    fn lower_limits(&mut self, limits: &Limits, readings: &[LimitReading]) -> Vec<LowerLimit> {
        if self.trace.as_ref().is_none_or(|trace| trace.is_lower_reported) {
            return Vec::new();
        }
        let full = self.full_plan(limits);
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

    /// Restarts the comparison, if there is one, because the limits have changed.
    pub(crate) fn restart_trace(&mut self, limits: &Limits, now: Timestamp) {
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.restart(limits.plan.rules.len(), now);
            trace.note(limits, now);
        }
    }

    /// Notes the remaining amounts after they decreased, if they are compared with headers.
    #[inline]
    pub(crate) fn note(&mut self, limits: &Limits, now: Timestamp) {
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.note(limits, now);
        }
    }

    /// Notes the headers of a response to a request that was sent at `sent_at`. Returns `true` once they have
    /// shown that the limits are buckets.
    pub(crate) fn shows_refill(
        &mut self,
        readings: &[LimitReading],
        sent_at: Timestamp,
        now: Timestamp,
    ) -> bool {
        let refill = self.refill.get_or_insert_with(|| Box::new(Refill::new(now)));
        let is_shown = refill.observe(readings, sent_at, now);
        if is_shown {
            self.refill = None;
        }
        is_shown
    }
}

/// Returns the index of the rule whose limit a reading states.
fn rule_of(limits: &Limits, reading: &LimitReading) -> Option<usize> {
    limits.plan.rules.iter().position(|rule| is_of(rule.limit(), reading))
}

/// Returns the amount by which a limit refills in this time.
fn refill(rule: &Rule, elapsed: Duration) -> u64 {
    let limit = rule.limit();
    let window = u128::from(limit.window().as_nanos()).max(1);
    let amount = u128::from(limit.amount()) * elapsed.as_nanos() / window;
    u64::try_from(amount).unwrap_or(u64::MAX)
}

fn is_of(limit: &Limit, reading: &LimitReading) -> bool {
    *limit.dimension() == reading.dimension
        && limit.window() == reading.window
        && *limit.dimension() != Dimension::Concurrency
}

/// Returns the remaining amount of a reading, unless the reading contradicts itself.
fn remaining(reading: &LimitReading) -> Option<u64> {
    reading.remaining.filter(|left| reading.limit.is_none_or(|limit| *left <= limit))
}
