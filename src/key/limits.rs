use std::slice;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::snapshot::BucketSnapshot;
use crate::engine::{self, Bucket, Rule};
use crate::plan::{Buckets, Plan, resize};
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// The limits of one key: its plan, and a bucket for each rule of it.
///
/// Pure: no locks, no clock; `now` is an argument.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) plan: Arc<Plan>,
    pub(crate) buckets: Buckets,
}

/// A reservation at its end: the version of the plan that it was granted under, when, and its cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Granted<'a> {
    pub(crate) version: u32,
    pub(crate) at: Timestamp,
    pub(crate) cost: &'a Cost,
}

impl Limits {
    /// Limits of which nothing is used.
    pub(crate) fn new(plan: Arc<Plan>) -> Self {
        Self { buckets: plan.fresh(), plan }
    }

    /// Each rule with its bucket.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Rule, &Bucket)> {
        self.plan.rules.iter().zip(&self.buckets)
    }

    /// Each rule with its bucket, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&Rule, &mut Bucket)> {
        self.plan.rules.iter().zip(&mut self.buckets)
    }

    /// Returns whether a new key would be the same.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        self.iter().all(|(rule, bucket)| bucket.is_fresh(rule, now))
    }

    /// Reserves, if it is plain that the cost fits. `false` tells nothing: a full check may still
    /// admit it.
    #[inline]
    pub(crate) fn reserve_if_plain(&mut self, cost: &Cost, now: Timestamp) -> bool {
        let Self { plan, buckets } = self;
        let fits = plan.counts(cost) && engine::fits(&plan.rules, buckets, cost, now);
        if fits {
            engine::commit(&plan.rules, buckets, cost, now);
        }
        fits
    }

    /// Reserves, whether the cost fits or not.
    pub(crate) fn commit(&mut self, cost: &Cost, now: Timestamp) {
        engine::commit(&self.plan.rules, &mut self.buckets, cost, now);
    }

    /// Takes a cost without a reservation, whether it fits or not.
    pub(crate) fn charge(&mut self, cost: &Cost, now: Timestamp) {
        engine::charge(&self.plan.rules, &mut self.buckets, cost, now);
    }

    /// Ends a reservation; `charged` is `None` for a request that never left.
    pub(crate) fn end(&mut self, granted: Granted<'_>, charged: Option<&Cost>, now: Timestamp) {
        let Self { plan, buckets } = self;
        let (sent, reserved) = (granted.at, granted.cost);
        let mut end = |from: usize, to: usize| {
            let (rules, buckets) = (&plan.rules[from..to], &mut buckets[from..to]);
            match charged {
                Some(actual) => engine::settle(rules, buckets, sent, reserved, actual, now),
                None => engine::release(rules, buckets, sent, reserved, now),
            }
        };
        if granted.version == plan.version {
            end(0, plan.rules.len());
        } else {
            // The quota has changed since: rules that came later never held anything of this request.
            let stood = (0..plan.rules.len()).filter(|&rule| plan.stood(rule, granted.version));
            stood.for_each(|rule| end(rule, rule + 1));
        }
    }

    /// Settles the part of one dimension that a request holds, before the request ends. Returns the
    /// rules that were settled.
    pub(crate) fn settle_early(
        &mut self,
        granted: Granted<'_>,
        dimension: &Dimension,
        charged: &Cost,
        now: Timestamp,
    ) -> SmallVec<[usize; 2]> {
        let Self { plan, buckets } = self;
        let mut settled = SmallVec::new();
        for (at, rule) in plan.rules.iter().enumerate() {
            if rule.holds() && rule.dimension() == dimension && plan.stood(at, granted.version) {
                let bucket = &mut buckets[at..=at];
                // A bucket that holds doesn't ask for the time of sending.
                engine::settle(slice::from_ref(rule), bucket, now, granted.cost, charged, now);
                settled.push(at);
            }
        }
        settled
    }

    /// Returns the limits of a key that follows another plan from now on: the amounts used stay used,
    /// the amounts held stay held.
    pub(crate) fn carried(&self, plan: Arc<Plan>, now: Timestamp) -> Self {
        Self { buckets: plan.carry(&self.plan, &self.buckets, now), plan }
    }

    /// Returns the same limits in other amounts.
    pub(crate) fn resized(&self, plan: Arc<Plan>, now: Timestamp) -> Self {
        Self { buckets: resize((&self.plan.rules, &self.buckets), &plan.rules, now), plan }
    }

    /// Forgets the amounts used. Reservations in flight stay held, and return nothing of what they
    /// took: `plan` is the successor of this plan, in a version of its own.
    pub(crate) fn clear(&mut self, plan: Arc<Plan>) {
        self.plan = plan;
        for (rule, bucket) in self.plan.rules.iter().zip(&mut self.buckets) {
            *bucket = bucket.cleared(rule);
        }
    }

    /// Returns what to keep of the buckets across a restart, less the amounts that others hold: by rule.
    pub(crate) fn save(
        &self,
        held_by_others: impl Fn(usize) -> u64,
        now: Timestamp,
    ) -> Vec<BucketSnapshot> {
        let save = |(at, (rule, bucket)): (usize, (&Rule, &Bucket))| {
            let limit = rule.limit();
            let mut saved = bucket.save(rule, now);
            saved.held = saved.held.saturating_sub(held_by_others(at));
            let is_fresh = saved.taken.is_empty() && saved.held == 0;
            let kept = !is_fresh && *limit.dimension() != Dimension::Concurrency;
            kept.then(|| BucketSnapshot::new(limit.dimension().clone(), limit.window(), saved))
        };
        self.iter().enumerate().filter_map(save).collect()
    }

    /// Takes saved amounts on top; a limit that the key doesn't have is left out.
    pub(crate) fn absorb(&mut self, saved: &[BucketSnapshot], now: Timestamp) {
        for other in saved {
            for (rule, bucket) in self.iter_mut() {
                let limit = rule.limit();
                if *limit.dimension() == other.dimension && limit.window() == other.window {
                    bucket.absorb(rule, &other.saved, now);
                }
            }
        }
    }

    /// Moves all times back by as much as the clock was set back.
    pub(crate) fn rebase(&mut self, back: Duration) {
        self.buckets.iter_mut().for_each(|bucket| bucket.rebase(back));
    }
}

#[cfg(test)]
#[path = "../../tests/parts/limits.rs"]
mod tests;
