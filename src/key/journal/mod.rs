//! The changes of a key since a store last collected them.
//!
//! A journal records the key's own use, rule by rule, as the engine applies it: amounts taken as they
//! are taken, amounts held only in total. The use of others, known or proven by headers, isn't in it.
//!
//! The owner of a journal puts its key on a list of dirty keys when [`Journal::take_dirty`] says so.

mod delta;

use std::time::Duration;

use smallvec::SmallVec;

use self::delta::{Delta, named, signed};
use super::changes::{BucketChanges, KeyChanges};
use super::limits::{Granted, Limits};
use crate::engine::Rule;
use crate::plan::Plan;
use crate::quota::{Cost, Dimension, Key, Window};
use crate::timestamp::Timestamp;

/// The changes of one key, until they are collected.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Amounts that were taken before are not reported, and so are not their returns.
    since: Timestamp,
    /// In the order of the plan's rules.
    deltas: SmallVec<[Delta; 3]>,
    /// Of limits that the key doesn't have, or no longer.
    loose: Vec<(Dimension, Window, Delta)>,
    by_others: Vec<ByOthers>,
    /// Until when it cools down, if that is new.
    cooling: Option<Timestamp>,
    reset_at: Option<Timestamp>,
    listed: Listed,
}

/// The state of a key on the list of dirty keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    No,
    /// It has changed, and its owner has yet to put it there.
    Due,
    Yes,
}

/// Use by others that headers proved, in one round of collection. Other processes of a store report
/// the same requests a little later.
#[derive(Debug)]
struct ByOthers {
    rule: usize,
    round: u64,
    amount: u64,
}

impl Journal {
    /// A journal of limits that are tracked from now on.
    pub(crate) fn new(limits: &Limits, since: Timestamp) -> Self {
        let held = limits.buckets.iter().any(|bucket| bucket.held() > 0);
        Self {
            since,
            deltas: std::iter::repeat_with(Delta::default).take(limits.buckets.len()).collect(),
            loose: Vec::new(),
            by_others: Vec::new(),
            cooling: None,
            reset_at: None,
            listed: if held { Listed::Due } else { Listed::No },
        }
    }

    /// Returns whether its key has to be put on the list of dirty keys, once.
    #[inline]
    pub(crate) fn take_dirty(&mut self) -> bool {
        let due = self.listed == Listed::Due;
        if due {
            self.listed = Listed::Yes;
        }
        due
    }

    /// Returns whether something is to be collected, or to be remembered until others report what
    /// they hold.
    pub(crate) fn is_open(&self) -> bool {
        self.listed != Listed::No
    }

    #[inline]
    fn changed(&mut self) {
        if self.listed == Listed::No {
            self.listed = Listed::Due;
        }
    }

    /// Records a reservation, after it was made.
    pub(crate) fn reserved(&mut self, limits: &Limits, cost: &Cost, now: Timestamp) {
        for ((rule, bucket), delta) in limits.iter().zip(&mut self.deltas) {
            if !rule.holds() {
                delta.enter((rule, bucket), now, signed(rule.amount(cost)));
            }
        }
        self.changed();
    }

    /// Records the end of a reservation.
    pub(crate) fn ended(
        &mut self,
        limits: &Limits,
        granted: Granted<'_>,
        charged: Option<&Cost>,
        now: Timestamp,
    ) {
        for (at, ((rule, bucket), delta)) in limits.iter().zip(&mut self.deltas).enumerate() {
            let of = (rule, bucket);
            let (reserved, charged) =
                (rule.amount(granted.cost), charged.map_or(0, |cost| rule.amount(cost)));
            let stood = limits.plan.stood(at, granted.version);
            match rule.holds() {
                _ if *rule.dimension() == Dimension::Concurrency || !stood => {}
                false if granted.at < self.since => {}
                true => delta.enter(of, now, signed(charged)),
                false => {
                    let more = signed(charged).saturating_sub(signed(reserved));
                    // As the engine does it.
                    let at = if more > 0 && rule.refills() { now } else { granted.at };
                    delta.enter(of, at, more);
                }
            }
        }
        self.changed();
    }

    /// Records that a part of a reservation was settled before its end: that of these rules.
    pub(crate) fn settled_early(
        &mut self,
        limits: &Limits,
        rules: &[usize],
        charged: &Cost,
        now: Timestamp,
    ) {
        for &at in rules {
            let (rule, bucket) = (&limits.plan.rules[at], &limits.buckets[at]);
            self.deltas[at].enter((rule, bucket), now, signed(rule.amount(charged)));
            self.changed();
        }
    }

    /// Records an amount that was taken without a reservation.
    pub(crate) fn charged(&mut self, limits: &Limits, cost: &Cost, now: Timestamp) {
        for ((rule, bucket), delta) in limits.iter().zip(&mut self.deltas) {
            if *rule.dimension() != Dimension::Concurrency {
                delta.enter((rule, bucket), now, signed(rule.amount(cost)));
            }
        }
        self.changed();
    }

    /// Records until when the key cools down.
    pub(crate) fn cooling(&mut self, until: Timestamp) {
        self.cooling = Some(until);
        self.changed();
    }

    /// Records that the key was reset: changes that aren't collected yet are forgotten with the rest.
    pub(crate) fn reset(&mut self, now: Timestamp) {
        for delta in &mut self.deltas {
            delta.forget_before(Timestamp::MAX);
        }
        self.by_others.clear();
        (self.reset_at, self.cooling) = (Some(now), Some(Timestamp::UNIX_EPOCH));
        self.changed();
    }

    /// Follows another plan, which is about to take the place of this one: deltas go to the rules that
    /// stand for the same limit. The amounts that others hold are taken off the old buckets; see
    /// [`hold_for_others`](Self::hold_for_others). An amount held of a rule that holds no longer, or
    /// is no longer there, counts as taken: its holder can no longer report the charge.
    pub(crate) fn follow(&mut self, limits: &mut Limits, new: &Plan, now: Timestamp) {
        for (bucket, delta) in limits.buckets.iter_mut().zip(&self.deltas) {
            bucket.drop_hold(delta.others);
        }
        let old = &limits.plan;
        let deltas = std::mem::take(&mut self.deltas);
        for ((rule, bucket), mut delta) in limits.iter().zip(deltas) {
            let stays = new.rules.iter().any(|next| next.holds() && old.is_standing(rule, next));
            if rule.holds() && !stays && *rule.dimension() != Dimension::Concurrency {
                delta.enter((rule, bucket), now, signed(bucket.held()));
            }
            *self.loose(rule.dimension(), rule.limit().window()) = delta;
        }
        let delta =
            |rule: &Rule| std::mem::take(self.loose(rule.dimension(), rule.limit().window()));
        self.deltas = new.rules.iter().map(delta).collect();
        self.by_others.clear();
        self.drop_blank();
        self.changed();
    }

    /// Holds the amounts that others hold, of the buckets of the new plan.
    pub(crate) fn hold_for_others(&self, limits: &mut Limits) {
        for (bucket, delta) in limits.buckets.iter_mut().zip(&self.deltas) {
            bucket.hold(delta.others);
        }
    }

    /// Returns the amount that others hold of the bucket of a rule.
    pub(crate) fn held_by_others(&self, rule: usize) -> u64 {
        self.deltas[rule].others
    }

    /// Records use by others that headers proved, which isn't this limiter's to report.
    pub(crate) fn used_by_others(&mut self, rule: usize, amount: u64, round: u64) {
        self.by_others.retain(|proven| proven.is_recent(round));
        match self.by_others.iter_mut().find(|proven| (proven.rule, proven.round) == (rule, round))
        {
            Some(proven) => proven.amount = proven.amount.saturating_add(amount),
            None => self.by_others.push(ByOthers { rule, round, amount }),
        }
    }

    /// Applies a change of a bucket that another limiter of the store has reported.
    pub(crate) fn apply(
        &mut self,
        limits: &mut Limits,
        other: &BucketChanges,
        (round, now): (u64, Timestamp),
    ) {
        let is_of = |rule: &Rule| {
            let window = named(rule.dimension(), rule.limit().window());
            *rule.dimension() == other.dimension && window == named(&other.dimension, other.window)
        };
        let Some(index) = limits.plan.rules.iter().position(is_of) else {
            // Should the key come to have such a limit, this is the amount that others hold of it.
            self.loose(&other.dimension, other.window).others = other.held;
            return self.drop_blank();
        };
        let (rule, bucket) = (&limits.plan.rules[index], &mut limits.buckets[index]);
        for &(at, amount) in &other.taken {
            let amount = match u64::try_from(amount) {
                Ok(taken) => signed(self.unproven(index, taken, round)),
                Err(_) => amount,
            };
            bucket.follow(rule, (at, amount), now);
        }
        let delta = &mut self.deltas[index];
        bucket.hold(other.held.saturating_sub(delta.others));
        bucket.drop_hold(delta.others.saturating_sub(other.held));
        delta.others = other.held;
    }

    /// Applies a reset by another limiter: amounts taken since, and not collected yet, are entered
    /// again into the empty buckets. Returns until when the key cools down.
    pub(crate) fn apply_reset(
        &mut self,
        limits: &mut Limits,
        reset_at: Timestamp,
        now: Timestamp,
    ) -> Timestamp {
        self.by_others.clear();
        for ((rule, bucket), delta) in limits.iter_mut().zip(&mut self.deltas) {
            for &entry in delta.forget_before(reset_at) {
                bucket.follow(rule, entry, now);
            }
        }
        self.cooling.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Returns the changes since the last collection, if there are any. A key whose requests count
    /// elsewhere by now reports no held amounts: that place does.
    pub(crate) fn collect(
        &mut self,
        key: &Key,
        limits: &Limits,
        is_retired: bool,
    ) -> Option<KeyChanges> {
        self.listed = Listed::No;
        let mut changes = KeyChanges::new(key.clone());
        for ((rule, bucket), delta) in limits.iter().zip(&mut self.deltas) {
            let own = bucket.held().saturating_sub(delta.others);
            let limit = rule.limit();
            let held = if is_retired { 0 } else { own };
            let changed = delta.collect(limit.dimension(), limit.window(), held);
            let refill = if rule.refills() { limit.amount() } else { 0 };
            changes.buckets.extend(changed.map(|changed| BucketChanges { refill, ..changed }));
        }
        for (dimension, window, delta) in &mut self.loose {
            changes.buckets.extend(delta.collect(dimension, *window, 0));
        }
        self.drop_blank();
        (changes.cooling_until, changes.reset_at) = (self.cooling.take(), self.reset_at.take());
        let same = changes.cooling_until.is_none() && changes.reset_at.is_none();
        (!same || !changes.buckets.is_empty()).then_some(changes)
    }

    /// Moves all times back by as much as the clock was set back.
    pub(crate) fn rebase(&mut self, back: Duration) {
        let loose = self.loose.iter_mut().map(|(.., delta)| delta);
        self.deltas.iter_mut().chain(loose).for_each(|delta| delta.rebase(back));
        let times = [&mut self.cooling, &mut self.reset_at].into_iter().flatten();
        for time in times.chain([&mut self.since]) {
            *time = time.saturating_sub(back);
        }
    }

    /// Returns the part of an amount taken by others that headers have not proven before.
    fn unproven(&mut self, rule: usize, mut amount: u64, round: u64) -> u64 {
        let of_rule = |proven: &&mut ByOthers| proven.rule == rule && proven.is_recent(round);
        for proven in self.by_others.iter_mut().filter(of_rule) {
            let known = amount.min(proven.amount);
            (amount, proven.amount) = (amount - known, proven.amount - known);
        }
        amount
    }

    /// Returns the delta of a limit that the key doesn't have.
    fn loose(&mut self, dimension: &Dimension, window: Window) -> &mut Delta {
        let window = named(dimension, window);
        let same = |delta: &(Dimension, Window, Delta)| delta.0 == *dimension && delta.1 == window;
        let at = self.loose.iter().position(same).unwrap_or_else(|| {
            self.loose.push((dimension.clone(), window, Delta::default()));
            self.loose.len() - 1
        });
        &mut self.loose[at].2
    }

    fn drop_blank(&mut self) {
        self.loose.retain(|(.., delta)| !delta.is_blank());
    }
}

impl ByOthers {
    /// Returns whether its report may still be on its way: others report once an interval, and their
    /// reports are read once an interval.
    fn is_recent(&self, round: u64) -> bool {
        self.round.saturating_add(2) >= round
    }
}

#[cfg(test)]
#[path = "../../../tests/parts/journal.rs"]
mod tests;
