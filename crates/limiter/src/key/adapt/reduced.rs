use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::reduction::Pace;
use crate::engine::{self, Bucket, Rule, Shortfall, Wait};
use crate::key::limits::Limits;
use crate::plan::{Buckets, Plan, Rules, resize};
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// A reduction of a key's limits after a refusal by its provider, until the key has recovered.
///
/// The key recovers in steps. Steps that are due are taken before the key changes otherwise, and are
/// taken into account when the key is only read.
#[derive(Debug, Clone)]
pub(crate) struct Reduced {
    pace: Pace,
    /// The plan of the key's quota.
    pub(crate) original: Arc<Plan>,
    /// The current amounts of the limits.
    amounts: SmallVec<[u64; 3]>,
    /// The time of the next recovery step.
    pub(crate) next_at: Timestamp,
    /// The time of the last recovery step.
    ends_at: Timestamp,
    /// The time of the last reduction. It covers refusals of requests that were sent before.
    pub(crate) reduced_at: Timestamp,
    /// The number of reductions since the last recovery step.
    pub(crate) reductions: u32,
    /// The time at which another program sent the last update that was applied.
    pub(crate) update_sent_at: Timestamp,
}

/// The limits after a recovery step.
pub(crate) struct Step {
    pub(crate) rules: Rules,
    pub(crate) buckets: Buckets,
    /// The reduction that is left; `None` once the key has recovered.
    pub(crate) reduced: Option<Reduced>,
}

impl Reduced {
    /// Creates a reduction of limits to these amounts, on top of the last one if there is one.
    pub(crate) fn new(
        last: Option<&Self>,
        limits: &Limits,
        pace: Pace,
        amounts: SmallVec<[u64; 3]>,
        now: Timestamp,
    ) -> Self {
        let original = last.map_or(&limits.plan, |last| &last.original);
        Self {
            pace,
            original: Arc::clone(original),
            amounts,
            next_at: Timestamp::UNIX_EPOCH,
            ends_at: Timestamp::UNIX_EPOCH,
            reduced_at: now,
            reductions: last.map_or(0, |last| last.reductions).saturating_add(1),
            update_sent_at: last.map_or(Timestamp::UNIX_EPOCH, |last| last.update_sent_at),
        }
    }

    /// Checks whether the cost fits at `at`, when no step is due. If it doesn't, the error has the time
    /// at which it fits after the recovery steps until then. A time more than a few steps ahead may be
    /// too early.
    pub(crate) fn check(
        &self,
        rules: &[Rule],
        buckets: &[Bucket],
        cost: &Cost,
        at: Timestamp,
    ) -> Result<(), Shortfall> {
        let Err(mut short) = engine::check(rules, buckets, cost, at) else { return Ok(()) };
        let (mut rules, mut buckets, mut reduced) = (rules, buckets, self);
        let mut step: Step;
        for _ in 0..STEPS {
            if !reduced.steps_before(short.wait) {
                return Err(short);
            }
            let then = reduced.next_at;
            step = reduced.step(rules, buckets);
            (rules, buckets) = (&step.rules, &step.buckets);
            match engine::check(rules, buckets, cost, then) {
                Ok(()) => return Err(Shortfall { wait: Wait::At(then), ..short }),
                Err(later) => short = later,
            }
            let Some(rest) = &step.reduced else { return Err(short) };
            reduced = rest;
        }
        let wait =
            if reduced.steps_before(short.wait) { Wait::At(reduced.next_at) } else { short.wait };
        Err(Shortfall { wait, ..short })
    }

    /// Returns whether the next step is due before the end of a wait. A wait for requests in flight may
    /// end before or after it, and a cost that never fits doesn't fit after a step either.
    fn steps_before(&self, wait: Wait) -> bool {
        matches!(wait, Wait::At(time) if time >= self.next_at)
    }

    /// Returns the limits after the next step.
    pub(crate) fn step(&self, rules: &[Rule], buckets: &[Bucket]) -> Step {
        let originals = self.original.rules.iter().map(|rule| rule.limit().amount());
        let amounts = self.amounts.iter().zip(originals);
        let amounts = amounts.map(|(&amount, original)| self.pace.recover(amount, original));
        let rest = Self {
            amounts: amounts.collect(),
            next_at: self.next_at + self.pace.interval,
            reductions: 0,
            ..self.clone()
        };
        let next = self.original.lower(&rest.amounts);
        let buckets = resize(rules, buckets, &next, self.next_at);
        Step { rules: next, buckets, reduced: (!rest.is_recovered()).then_some(rest) }
    }

    /// Returns the plan of the reduced amounts.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        Arc::new(self.original.lowered(&self.amounts))
    }

    fn is_recovered(&self) -> bool {
        let originals = self.original.rules.iter().map(|rule| rule.limit().amount());
        originals.eq(self.amounts.iter().copied())
    }

    /// Returns whether the key has recovered by `now`.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.ends_at <= now
    }

    /// Delays the next step to an interval after `time` or later.
    pub(crate) fn recover_after(&mut self, time: Timestamp) {
        self.next_at = self.next_at.max(time + self.pace.interval);
        let steps = |(&amount, rule): (&u64, &Rule)| {
            let (mut amount, original) = (amount, rule.limit().amount());
            std::iter::from_fn(|| {
                let more = amount < original;
                amount = self.pace.recover(amount, original);
                more.then_some(())
            })
            .count()
        };
        let steps = self.amounts.iter().zip(&*self.original.rules).map(steps).max();
        let more = u32::try_from(steps.unwrap_or(0).saturating_sub(1)).unwrap_or(u32::MAX);
        self.ends_at = self.next_at + self.pace.interval.saturating_mul(more);
    }

    /// Sets the pace of recovery. The next step comes an interval of that pace after `now`, or earlier.
    pub(crate) fn set_pace(&mut self, pace: Pace, now: Timestamp) {
        self.pace = pace;
        self.next_at = self.next_at.min(now + pace.interval);
        self.recover_after(Timestamp::UNIX_EPOCH);
    }

    pub(crate) fn rebase(&mut self, back: Duration) {
        for time in [&mut self.next_at, &mut self.ends_at, &mut self.reduced_at] {
            *time = time.saturating_sub(back);
        }
    }
}

/// The number of steps that a check looks ahead: two minutes at the default interval.
const STEPS: u32 = 4;
