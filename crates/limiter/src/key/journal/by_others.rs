use super::{Journal, UsageByOthers};
use crate::key::limits::Limits;

/// Usage by others.
impl Journal {
    /// Adds the amounts that others hold to the buckets of the new plan.
    pub(crate) fn hold_for_others(&self, limits: &mut Limits) {
        for (bucket, delta) in limits.buckets.iter_mut().zip(&self.deltas) {
            bucket.hold(delta.others);
        }
    }

    /// Returns the amount that others hold under a rule.
    pub(crate) fn held_by_others(&self, rule: usize) -> u64 {
        self.deltas[rule].others
    }

    /// Records usage by others that headers showed. This limiter doesn't report it.
    pub(crate) fn used_by_others(&mut self, rule: usize, amount: u64, round: u64) {
        self.by_others.retain(|proven| proven.is_recent(round));
        match self.by_others.iter_mut().find(|proven| (proven.rule, proven.round) == (rule, round))
        {
            Some(proven) => proven.amount = proven.amount.saturating_add(amount),
            None => self.by_others.push(UsageByOthers { rule, round, amount }),
        }
    }

    /// Returns the part of a reported amount that headers haven't shown before.
    pub(super) fn unproven(&mut self, rule: usize, mut amount: u64, round: u64) -> u64 {
        let of_rule = |proven: &&mut UsageByOthers| proven.rule == rule && proven.is_recent(round);
        for proven in self.by_others.iter_mut().filter(of_rule) {
            let known = amount.min(proven.amount);
            (amount, proven.amount) = (amount - known, proven.amount - known);
        }
        amount
    }
}
