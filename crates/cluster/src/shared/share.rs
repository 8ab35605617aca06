use std::slice;
use std::sync::Arc;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::{self, Bucket, Rule, Shortfall, Wait};
use paceline_limiter::quota::{Cost, Dimension};
use paceline_limiter::seam;

use super::turns::Turns;

/// The buckets of a key while the store is unavailable. Each amount counts once per process, so that
/// this process admits its share of each limit; where processes take turns, it counts once.
#[derive(Debug)]
pub(super) struct Share {
    rules: Arc<[Rule]>,
    buckets: Vec<Bucket>,
    /// The end of the last turn that this process has used, in the server's time.
    used_until: u64,
}

impl Share {
    /// Creates a share with these buckets, or that of the same limit under the rules of an earlier share.
    pub(super) fn new(
        rules: Arc<[Rule]>,
        mut buckets: Vec<Bucket>,
        earlier: Option<&Self>,
        now: Timestamp,
    ) -> Self {
        for (rule, bucket) in rules.iter().zip(&mut buckets) {
            match earlier.and_then(|earlier| earlier.carried_over(rule, now)) {
                Some(carried_over) => *bucket = carried_over,
                None => charge_held(rule, bucket, now),
            }
        }
        let used_until = earlier.map_or(0, |earlier| earlier.used_until);
        Self { rules, buckets, used_until }
    }

    pub(super) fn has_rules(&self, rules: &[Rule]) -> bool {
        *self.rules == *rules
    }

    /// Checks a cost against all limits.
    ///
    /// # Errors
    /// Returns the [`Shortfall`] with the longest wait.
    pub(super) fn check(
        &self,
        cost: &Cost,
        turns: &Turns,
        now: Timestamp,
    ) -> Result<(), Shortfall> {
        let mut longest: Option<Shortfall> = None;
        for (index, (rule, bucket)) in self.rules.iter().zip(&self.buckets).enumerate() {
            let wait = self.wait(rule, bucket, rule.amount(cost), turns, now);
            if let Some(wait) = wait
                && longest.is_none_or(|longest| wait > longest.wait)
            {
                longest = Some(Shortfall { rule: index, wait });
            }
        }
        longest.map_or(Ok(()), Err)
    }

    fn wait(
        &self,
        rule: &Rule,
        bucket: &Bucket,
        amount: u64,
        turns: &Turns,
        now: Timestamp,
    ) -> Option<Wait> {
        if amount == 0 {
            return None;
        }
        let times = match turns.apply_to(rule) {
            false => turns.members,
            true if amount > 1 => return Some(Wait::Never),
            true => match turns.current(&self.rules, self.used_until) {
                Ok(turn) => turn.units.min(rule.capacity()),
                Err(wait) => return Some(Wait::At(now + wait)),
            },
        };
        let cost = multiplied(rule, amount, times);
        let checked = engine::check(slice::from_ref(rule), slice::from_ref(bucket), &cost, now);
        checked.err().map(|shortfall| shortfall.wait)
    }

    /// Reserves a cost that [`check`](Self::check) has found to fit.
    pub(super) fn commit(&mut self, cost: &Cost, turns: &Turns, now: Timestamp) {
        let takes_turn = |rule: &Rule| rule.amount(cost) > 0 && turns.apply_to(rule);
        if self.rules.iter().any(takes_turn)
            && let Ok(turn) = turns.current(&self.rules, self.used_until)
        {
            self.used_until = turn.until;
        }
        for (rule, bucket) in self.rules.iter().zip(&mut self.buckets) {
            let cost = multiplied(rule, rule.amount(cost), counted(rule, turns));
            engine::commit(slice::from_ref(rule), slice::from_mut(bucket), &cost, now);
        }
    }

    /// Ends a request. `actual` is `None` for one that was never sent.
    pub(super) fn end(
        &mut self,
        reserved: &Cost,
        actual: Option<&Cost>,
        turns: &Turns,
        sent: Timestamp,
        now: Timestamp,
    ) {
        for (rule, bucket) in self.rules.iter().zip(&mut self.buckets) {
            let times = counted(rule, turns);
            let (rules, buckets) = (slice::from_ref(rule), slice::from_mut(bucket));
            let before = multiplied(rule, rule.amount(reserved), times);
            match actual {
                Some(actual) => {
                    let actual = multiplied(rule, rule.amount(actual), times);
                    engine::settle(rules, buckets, sent, &before, &actual, now);
                }
                None => engine::release(rules, buckets, sent, &before, now),
            }
        }
        // A place that is free again can be taken again.
        let counts_places = |rule: &Rule| *rule.dimension() == Dimension::Concurrency;
        if self.rules.iter().filter(|rule| turns.apply_to(rule)).all(counts_places) {
            self.used_until = 0;
        }
    }

    /// Frees the concurrency slots of a request that the store had granted.
    pub(super) fn release_concurrency(&mut self) {
        for (rule, bucket) in self.rules.iter().zip(&mut self.buckets) {
            if *rule.dimension() == Dimension::Concurrency {
                bucket.drop_hold(1);
            }
        }
    }

    /// Resets the usage.
    pub(super) fn reset(&mut self) {
        for (rule, bucket) in self.rules.iter().zip(&mut self.buckets) {
            *bucket = bucket.cleared(rule);
        }
    }

    /// Carries the bucket of the same limit over to a changed rule.
    fn carried_over(&self, rule: &Rule, now: Timestamp) -> Option<Bucket> {
        let index = self.rules.iter().position(|old| old.counts_same_as(rule))?;
        Some(self.buckets.get(index)?.carry(&self.rules[index], rule, now))
    }
}

/// Converts the amounts that other processes hold to usage when the store becomes unavailable,
/// since this process won't learn of their settlements. Concurrency slots stay held until the process's own
/// requests end.
fn charge_held(rule: &Rule, bucket: &mut Bucket, now: Timestamp) {
    let held = bucket.held();
    if held > 0 && *rule.dimension() != Dimension::Concurrency {
        bucket.drop_hold(held);
        bucket.charge(rule, held, now);
    }
}

/// Returns how often an amount counts in the buckets of this process.
fn counted(rule: &Rule, turns: &Turns) -> u64 {
    if turns.apply_to(rule) { 1 } else { turns.members }
}

/// Returns a cost of this many times an amount in the dimension of a rule.
fn multiplied(rule: &Rule, amount: u64, times: u64) -> Cost {
    let mut cost = Cost::new().requests(0);
    seam::set_amount(&mut cost, rule.dimension(), amount.saturating_mul(times));
    cost
}
