//! The changes of a key since a store last collected them.
//!
//! A journal records the usage of this limiter by rule, as the engine applies it: usage with its times,
//! and held amounts in total. It leaves out usage by others, reported by a store or shown by headers.
//!
//! The owner of a journal puts the key on the list of dirty keys when [`Journal::take_dirty`] returns
//! `true`.

mod by_others;
mod delta;

use std::time::Duration;

use smallvec::SmallVec;

use self::delta::{Delta, signed, window_name};
use super::changes::{BucketChanges, KeyChanges};
use super::limits::{Granted, Limits};
use crate::answer::learned::LearnedLimit;
use crate::answer::utilization::Utilization;
use crate::engine::Rule;
use crate::plan::Plan;
use crate::quota::{Cost, Dimension, Key, Window};
use crate::timestamp::Timestamp;

/// The changes of one key since the last collection.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Usage before this time isn't reported, and neither are amounts returned of it.
    since: Timestamp,
    /// In the order of the plan's rules.
    deltas: SmallVec<[Delta; 3]>,
    /// Deltas of limits that the key doesn't have, or no longer has.
    detached: Vec<(Dimension, Window, Delta)>,
    by_others: Vec<UsageByOthers>,
    /// The end of the cool-down, if it has changed.
    cooling: Option<Timestamp>,
    /// The limits that were learned, if they have changed.
    learned: Option<Vec<LearnedLimit>>,
    /// The limits that were learned at the last collection that reported some.
    collected: Vec<LearnedLimit>,
    /// The used parts of the account's windows, if they have changed.
    utilization: Option<Vec<Utilization>>,
    reset_at: Option<Timestamp>,
    listing: Listing,
}

/// The state of a key on the list of dirty keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    No,
    /// The key has changed, and its owner hasn't put it on the list yet.
    Due,
    Yes,
}

/// Usage by others that headers showed in one round of collection. Other processes of a store report
/// the same requests a little later.
#[derive(Debug)]
struct UsageByOthers {
    rule: usize,
    round: u64,
    amount: u64,
}

impl Journal {
    /// Creates a journal of limits that are tracked from now on.
    pub(crate) fn new(limits: &Limits, since: Timestamp) -> Self {
        let is_held = limits.buckets.iter().any(|bucket| bucket.held() > 0);
        Self {
            since,
            deltas: std::iter::repeat_with(Delta::default).take(limits.buckets.len()).collect(),
            detached: Vec::new(),
            by_others: Vec::new(),
            cooling: None,
            learned: None,
            collected: Vec::new(),
            utilization: None,
            reset_at: None,
            listing: if is_held { Listing::Due } else { Listing::No },
        }
    }

    /// Returns whether the key has to be put on the list of dirty keys. Returns `true` once for each round.
    #[inline]
    pub(crate) fn take_dirty(&mut self) -> bool {
        let is_due = self.listing == Listing::Due;
        if is_due {
            self.listing = Listing::Yes;
        }
        is_due
    }

    /// Returns whether there are changes to collect, or to remember until others report the amounts that
    /// they hold.
    pub(crate) fn is_open(&self) -> bool {
        self.listing != Listing::No
    }

    #[inline]
    fn mark_changed(&mut self) {
        if self.listing == Listing::No {
            self.listing = Listing::Due;
        }
    }

    /// Records a reservation after it was made.
    pub(crate) fn reserved(&mut self, limits: &Limits, cost: &Cost, now: Timestamp) {
        for ((rule, bucket), delta) in limits.iter().zip(&mut self.deltas) {
            if !rule.holds() {
                delta.enter(rule, bucket, now, signed(rule.amount(cost)));
            }
        }
        self.mark_changed();
    }

    /// Records the end of a reservation.
    pub(crate) fn ended(
        &mut self,
        limits: &Limits,
        granted: Granted<'_>,
        charged: Option<&Cost>,
        now: Timestamp,
    ) {
        for (index, ((rule, bucket), delta)) in limits.iter().zip(&mut self.deltas).enumerate() {
            let (reserved, charged) =
                (rule.amount(granted.cost), charged.map_or(0, |cost| rule.amount(cost)));
            let is_newer = !limits.plan.has_since(index, granted.version);
            match rule.holds() {
                _ if *rule.dimension() == Dimension::Concurrency || is_newer => {}
                false if granted.at < self.since => {}
                true => delta.enter(rule, bucket, now, signed(charged)),
                false => {
                    let more = signed(charged).saturating_sub(signed(reserved));
                    let gives_back = limits.plan.gives_back(index, granted.version);
                    // The same time that the engine uses.
                    let at = match more > 0 && (rule.refills() || !gives_back) {
                        true => now,
                        false => granted.at,
                    };
                    if more > 0 || gives_back {
                        delta.enter(rule, bucket, at, more);
                    }
                }
            }
        }
        self.mark_changed();
    }

    /// Records that a reservation was settled early under these rules.
    pub(crate) fn settled_early(
        &mut self,
        limits: &Limits,
        rules: &[usize],
        charged: &Cost,
        now: Timestamp,
    ) {
        for &at in rules {
            let (rule, bucket) = (&limits.plan.rules[at], &limits.buckets[at]);
            self.deltas[at].enter(rule, bucket, now, signed(rule.amount(charged)));
            self.mark_changed();
        }
    }

    /// Records a charge without a reservation.
    pub(crate) fn charged(&mut self, limits: &Limits, cost: &Cost, now: Timestamp) {
        for ((rule, bucket), delta) in limits.iter().zip(&mut self.deltas) {
            if *rule.dimension() != Dimension::Concurrency {
                delta.enter(rule, bucket, now, signed(rule.amount(cost)));
            }
        }
        self.mark_changed();
    }

    /// Records the end of a cool-down.
    pub(crate) fn cooling(&mut self, until: Timestamp) {
        self.cooling = Some(until);
        self.mark_changed();
    }

    /// Records the limits that were learned, all of them.
    pub(crate) fn learned(&mut self, learned: Vec<LearnedLimit>) {
        self.learned = Some(learned);
        self.mark_changed();
    }

    /// Records the used parts of the account's windows, all of them.
    pub(crate) fn utilization(&mut self, windows: Vec<Utilization>) {
        self.utilization = Some(windows);
        self.mark_changed();
    }

    /// Records the present amounts of the limits that were learned, before a collection, if they have changed
    /// noticeably since the last one.
    pub(crate) fn learned_now(&mut self, learned: Vec<LearnedLimit>) {
        let is_same = |(now, then): (&LearnedLimit, &LearnedLimit)| {
            let change = (now.amount - then.amount).abs();
            now.dimension == then.dimension && change <= UNREPORTED_CHANGE * then.amount
        };
        let is_known = learned.len() == self.collected.len()
            && learned.iter().zip(&self.collected).all(is_same);
        if self.learned.is_some() || !is_known {
            self.learned = Some(learned);
        }
    }

    /// Records a reset of the key. It also drops changes that aren't collected yet.
    pub(crate) fn reset(&mut self, now: Timestamp) {
        for delta in &mut self.deltas {
            delta.drop_before(Timestamp::MAX);
        }
        self.by_others.clear();
        (self.reset_at, self.cooling) = (Some(now), Some(Timestamp::UNIX_EPOCH));
        (self.learned, self.utilization) = (Some(Vec::new()), Some(Vec::new()));
        self.mark_changed();
    }

    /// Prepares the change to another plan: deltas move to the rules that continue the same limit, and the
    /// amounts that others hold are removed from the old buckets;
    /// [`hold_for_others`](Self::hold_for_others) adds them to the new ones. An amount held under a rule
    /// that no longer holds, or no longer exists, is recorded as usage, since its holder can no longer
    /// report the charge.
    pub(crate) fn follow(&mut self, limits: &mut Limits, new: &Plan, now: Timestamp) {
        for ((rule, bucket), delta) in limits.iter_mut().zip(&self.deltas) {
            bucket.drop_hold(delta.others);
            if *rule.dimension() != Dimension::Concurrency
                && !new.rules.iter().any(|next| next.counts_same_as(rule))
            {
                // Other limiters report it to the old limit.
                bucket.charge(rule, delta.others, now);
            }
        }
        let deltas = std::mem::take(&mut self.deltas);
        for ((rule, bucket), mut delta) in limits.iter().zip(deltas) {
            let stays_held = new.rules.iter().any(|next| next.holds() && next.counts_same_as(rule));
            if rule.holds() && !stays_held && *rule.dimension() != Dimension::Concurrency {
                delta.enter(rule, bucket, now, signed(bucket.held()));
            }
            if rule.is_anchored() && !new.rules.iter().any(|next| next.continues(rule)) {
                // Its usage counts from now, as late as it can have been.
                delta.move_to(now);
            }
            *self.detached(rule.dimension(), rule.limit().window()) = delta;
        }
        let delta =
            |rule: &Rule| std::mem::take(self.detached(rule.dimension(), rule.limit().window()));
        self.deltas = new.rules.iter().map(delta).collect();
        self.by_others.clear();
        self.drop_blank();
        self.mark_changed();
    }

    /// Applies a change of a bucket that another limiter of the store has reported.
    pub(crate) fn apply(
        &mut self,
        limits: &mut Limits,
        other: &BucketChanges,
        round: u64,
        now: Timestamp,
    ) {
        let is_of = |rule: &Rule| {
            let window = window_name(rule.dimension(), rule.limit().window());
            *rule.dimension() == other.dimension
                && window == window_name(&other.dimension, other.window)
        };
        let Some(index) = limits.plan.rules.iter().position(is_of) else {
            // Remembered for the case that the key gets such a limit later.
            self.detached(&other.dimension, other.window).others = other.held;
            return self.drop_blank();
        };
        let (rule, bucket) = (&limits.plan.rules[index], &mut limits.buckets[index]);
        for &(at, amount) in &other.taken {
            let amount = match u64::try_from(amount) {
                Ok(taken) => signed(self.unproven(index, taken, round)),
                Err(_) => amount,
            };
            bucket.apply(rule, at, amount, now);
        }
        let delta = &mut self.deltas[index];
        bucket.hold(other.held.saturating_sub(delta.others));
        bucket.drop_hold(delta.others.saturating_sub(other.held));
        delta.others = other.held;
    }

    /// Applies a reset by another limiter: usage since then that isn't collected yet is charged again to
    /// the empty buckets. Returns the end of the cool-down.
    pub(crate) fn apply_reset(
        &mut self,
        limits: &mut Limits,
        reset_at: Timestamp,
        now: Timestamp,
    ) -> Timestamp {
        self.by_others.clear();
        for ((rule, bucket), delta) in limits.iter_mut().zip(&mut self.deltas) {
            for &(at, amount) in delta.drop_before(reset_at) {
                bucket.apply(rule, at, amount, now);
            }
        }
        self.cooling.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Returns the changes since the last collection, if there are any. A retired key reports no held
    /// amounts, since the key that replaced it does.
    pub(crate) fn collect(
        &mut self,
        key: &Key,
        limits: &Limits,
        is_retired: bool,
    ) -> Option<KeyChanges> {
        self.listing = Listing::No;
        let mut buckets = Vec::new();
        for ((rule, bucket), delta) in limits.iter().zip(&mut self.deltas) {
            let own = bucket.held().saturating_sub(delta.others);
            let limit = rule.limit();
            let held = if is_retired { 0 } else { own };
            let changed = delta.collect(limit.dimension(), limit.window(), held);
            let refill = if rule.refills() { limit.amount() } else { 0 };
            buckets.extend(changed.map(|changed| BucketChanges { refill, ..changed }));
        }
        for (dimension, window, delta) in &mut self.detached {
            buckets.extend(delta.collect(dimension, *window, 0));
        }
        self.drop_blank();
        let changes = KeyChanges {
            key: key.clone(),
            buckets,
            cooling_until: self.cooling.take(),
            cooling_kind: None,
            learned: self.learned.take(),
            utilization: self.utilization.take(),
            reset_at: self.reset_at.take(),
        };
        if let Some(learned) = &changes.learned {
            self.collected.clone_from(learned);
        }
        (!changes.is_empty()).then_some(changes)
    }

    /// Moves all times back by the amount by which the clock was set back.
    pub(crate) fn rebase(&mut self, back: Duration) {
        let detached = self.detached.iter_mut().map(|(.., delta)| delta);
        self.deltas.iter_mut().chain(detached).for_each(|delta| delta.rebase(back));
        for limit in self.learned.iter_mut().flatten() {
            limit.measured_at = limit.measured_at.saturating_sub(back);
        }
        let windows = self.utilization.iter_mut().flatten();
        let times = windows.flat_map(Utilization::times_mut);
        let times = times.chain([&mut self.cooling, &mut self.reset_at].into_iter().flatten());
        for time in times.chain([&mut self.since]) {
            *time = time.saturating_sub(back);
        }
    }

    /// Returns the delta of a limit that the key doesn't have.
    fn detached(&mut self, dimension: &Dimension, window: Window) -> &mut Delta {
        let window = window_name(dimension, window);
        let same = |delta: &(Dimension, Window, Delta)| delta.0 == *dimension && delta.1 == window;
        let at = self.detached.iter().position(same).unwrap_or_else(|| {
            self.detached.push((dimension.clone(), window, Delta::default()));
            self.detached.len() - 1
        });
        &mut self.detached[at].2
    }

    fn drop_blank(&mut self) {
        self.detached.retain(|(.., delta)| !delta.is_blank());
    }
}

impl UsageByOthers {
    /// Returns whether the store's report of this usage may still be on its way: others report once per
    /// interval, and their reports are read once per interval.
    fn is_recent(&self, round: u64) -> bool {
        self.round.saturating_add(2) >= round
    }
}

/// The part of a learned limit by which it changes before a store is told.
const UNREPORTED_CHANGE: f64 = 0.01;

#[cfg(test)]
mod tests;
