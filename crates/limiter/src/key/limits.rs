use std::slice;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::queue::Amounts;
use super::snapshot::BucketSnapshot;
use crate::engine::{self, Bucket, Rule, Saved};
use crate::plan::{Buckets, Plan, resize};
use crate::quota::{Cost, Dimension, Limit};
use crate::timestamp::Timestamp;

/// The limits of one key: its plan, with a bucket for each rule.
///
/// Pure: it owns no lock and reads no clock.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) plan: Arc<Plan>,
    pub(crate) buckets: Buckets,
}

/// A reservation that ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Granted<'a> {
    /// The version of the plan that it was granted under.
    pub(crate) version: u32,
    /// The time at which it was granted.
    pub(crate) at: Timestamp,
    pub(crate) cost: &'a Cost,
}

impl Limits {
    /// Creates unused limits.
    pub(crate) fn new(plan: Arc<Plan>) -> Self {
        Self { buckets: plan.new_buckets(), plan }
    }

    /// Returns each rule with its bucket.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Rule, &Bucket)> {
        self.plan.rules.iter().zip(&self.buckets)
    }

    /// Returns each rule with its bucket, mutably.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&Rule, &mut Bucket)> {
        self.plan.rules.iter().zip(&mut self.buckets)
    }

    /// Returns whether the limits are equivalent to unused ones.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        self.iter().all(|(rule, bucket)| bucket.is_fresh(rule, now))
    }

    /// Reserves if a quick check shows that the cost fits. `false` means only that a full check has to
    /// decide.
    #[inline]
    pub(crate) fn try_reserve_fast(&mut self, cost: &Cost, now: Timestamp) -> bool {
        let Self { plan, buckets } = self;
        let fits = plan.counts(cost)
            && plan.decides_alone(cost)
            && engine::fits(&plan.rules, buckets, cost, now);
        if fits {
            engine::commit(&plan.rules, buckets, cost, now);
        }
        fits
    }

    /// Returns a time before which these amounts cannot all be admitted, in whatever parts: a lower bound.
    /// Only limits whose charge is final when a request is sent count, since others may return a part.
    pub(crate) fn earliest(&self, amounts: Amounts<u128>, now: Timestamp) -> Timestamp {
        let time = |(rule, bucket): (&Rule, &Bucket)| {
            let amount = *amounts.get(rule.dimension().column())?;
            (!rule.holds()).then(|| bucket.earliest(rule, amount, now))
        };
        self.iter().filter_map(time).max().unwrap_or(now)
    }

    /// Reserves even if the cost doesn't fit.
    pub(crate) fn commit(&mut self, cost: &Cost, now: Timestamp) {
        engine::commit(&self.plan.rules, &mut self.buckets, cost, now);
    }

    /// Charges a cost without a reservation, even if it doesn't fit.
    pub(crate) fn charge(&mut self, cost: &Cost, now: Timestamp) {
        engine::charge(&self.plan.rules, &mut self.buckets, cost, now);
    }

    /// Ends a reservation. `charged` is `None` for a request that was never sent.
    pub(crate) fn end(&mut self, granted: Granted<'_>, charged: Option<&Cost>, now: Timestamp) {
        let Self { plan, buckets } = self;
        let (sent, reserved) = (granted.at, granted.cost);
        let end = |buckets: &mut Buckets, from: usize, to: usize, sent: Timestamp| {
            let (rules, buckets) = (&plan.rules[from..to], &mut buckets[from..to]);
            match charged {
                Some(actual) => engine::settle(rules, buckets, sent, reserved, actual, now),
                None => engine::release(rules, buckets, sent, reserved, now),
            }
        };
        if granted.version == plan.version && !plan.was_faster() {
            end(buckets, 0, plan.rules.len(), sent);
        } else {
            // The limits have changed since. Rules that were added later hold nothing of this request.
            for index in (0..plan.rules.len()).filter(|&rule| plan.has_since(rule, granted.version))
            {
                let rule = &plan.rules[index];
                if rule.holds() || plan.gives_back(index, granted.version) {
                    end(buckets, index, index + 1, plan.refilled_since(index, sent, now));
                } else if let Some(actual) = charged {
                    let more = rule.amount(actual).saturating_sub(rule.amount(reserved));
                    buckets[index].charge(rule, more, now);
                }
            }
        }
    }

    /// Settles one dimension of a reservation before the request ends. Returns the rules that were
    /// settled.
    pub(crate) fn settle_early(
        &mut self,
        granted: Granted<'_>,
        dimension: &Dimension,
        charged: &Cost,
        now: Timestamp,
    ) -> SmallVec<[usize; 2]> {
        let Self { plan, buckets } = self;
        let mut settled = SmallVec::new();
        for (index, rule) in plan.rules.iter().enumerate() {
            let is_held = rule.holds() && plan.has_since(index, granted.version);
            if is_held && rule.dimension() == dimension {
                let bucket = &mut buckets[index..=index];
                // The time of sending doesn't matter to a rule that holds until the end.
                engine::settle(slice::from_ref(rule), bucket, now, granted.cost, charged, now);
                settled.push(index);
            }
        }
        settled
    }

    /// Returns the limits under another plan. Usage and held amounts are kept.
    pub(crate) fn carried(&self, plan: Arc<Plan>, now: Timestamp) -> Self {
        Self { buckets: plan.carry(&self.plan, &self.buckets, now), plan }
    }

    /// Adds the usage of other limits, as if it were that of a key with this plan. Their requests in flight count as used.
    pub(crate) fn merge(&mut self, other: &Self, now: Timestamp) {
        let other = other.carried(Arc::clone(&self.plan), now);
        for ((rule, bucket), other) in self.iter_mut().zip(&other.buckets) {
            // A place in flight would never be free again.
            if *rule.dimension() != Dimension::Concurrency {
                bucket.merge(rule, other, now);
            }
        }
    }

    /// Returns the limits as if all requests in flight had come back without a charge.
    pub(crate) fn without_holds(&self) -> Self {
        let buckets = self.buckets.iter().map(Bucket::without_holds).collect();
        Self { plan: Arc::clone(&self.plan), buckets }
    }

    /// Returns the same limits with other amounts.
    pub(crate) fn resized(&self, plan: Arc<Plan>, now: Timestamp) -> Self {
        Self { buckets: resize(&self.plan.rules, &self.buckets, &plan.rules, now), plan }
    }

    /// Resets the usage. Reservations in flight stay held, and return nothing of their usage when they
    /// end, because `plan` is a new version of this plan.
    pub(crate) fn clear(&mut self, plan: Arc<Plan>) {
        self.plan = plan;
        for (rule, bucket) in self.plan.rules.iter().zip(&mut self.buckets) {
            *bucket = bucket.cleared(rule);
        }
    }

    /// Returns the state of the buckets to keep across a restart, less the amounts that others hold of each
    /// rule.
    pub(crate) fn save(
        &self,
        held_by_others: impl Fn(usize) -> u64,
        now: Timestamp,
    ) -> Vec<BucketSnapshot> {
        let save = |(index, (rule, bucket)): (usize, (&Rule, &Bucket))| {
            let limit = rule.limit();
            let mut saved = bucket.save(rule, now);
            saved.held = saved.held.saturating_sub(held_by_others(index));
            let is_fresh = saved.taken.is_empty() && saved.held == 0;
            let is_kept = !is_fresh && *limit.dimension() != Dimension::Concurrency;
            is_kept.then(|| BucketSnapshot::new(limit.dimension().clone(), limit.window(), saved))
        };
        self.iter().enumerate().filter_map(save).collect()
    }

    /// Adds saved amounts. Those of a limit that the key no longer has count to the limits of the same dimension,
    /// from before their own usage.
    pub(crate) fn absorb(&mut self, saved: &[BucketSnapshot], now: Timestamp) {
        let is_of = |saved: &BucketSnapshot, limit: &Limit| {
            *limit.dimension() == saved.dimension && limit.window() == saved.window
        };
        let rules = Arc::clone(&self.plan.rules);
        let is_replaced =
            |saved: &&BucketSnapshot| !rules.iter().any(|rule| is_of(saved, rule.limit()));
        let (replaced, kept): (Vec<_>, Vec<_>) = saved.iter().partition(is_replaced);
        for (rule, bucket) in self.iter_mut() {
            let limit = rule.limit();
            let own = || kept.iter().filter(|saved| is_of(saved, limit));
            let first = own().flat_map(|saved| &saved.saved.taken).min().copied();
            let replaced = replaced.iter().filter(|saved| saved.dimension == *limit.dimension());
            let earlier = replaced.map(|saved| saved.usage_before(first, limit.window(), now));
            // Several limits counted the same usage.
            let sum = |saved: &Saved| saved.taken.iter().map(|(_, n)| u128::from(*n)).sum::<u128>();
            if let Some(earlier) = earlier.max_by_key(sum) {
                bucket.absorb(rule, &earlier, now);
            }
            own().for_each(|saved| bucket.absorb(rule, &saved.saved, now));
        }
    }

    /// Moves all times back by the amount by which the clock was set back.
    pub(crate) fn rebase(&mut self, back: Duration) {
        self.buckets.iter_mut().for_each(|bucket| bucket.rebase(back));
    }
}

#[cfg(test)]
mod tests;
