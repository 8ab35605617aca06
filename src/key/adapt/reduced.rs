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
/// It recovers as time passes: due steps are taken before anything else is done to the key, and a
/// question is answered as if they had been.
#[derive(Debug, Clone)]
pub(crate) struct Reduced {
    pace: Pace,
    /// The plan of the key's quota.
    pub(crate) original: Arc<Plan>,
    /// The amounts of its limits now.
    amounts: SmallVec<[u64; 3]>,
    /// When it recovers by a step, and when it has recovered wholly.
    pub(crate) next_at: Timestamp,
    ends_at: Timestamp,
    /// When it was reduced last: refusals of requests sent before belong to that reduction.
    pub(crate) reduced_at: Timestamp,
    /// The number of reductions since it last recovered by a step.
    pub(crate) times: u32,
    /// When the last update of another program that was applied was sent.
    pub(crate) heard_at: Timestamp,
}

/// Limits after a step of recovery.
pub(crate) struct Step {
    pub(crate) rules: Rules,
    pub(crate) buckets: Buckets,
    /// `None` once the key has recovered.
    pub(crate) left: Option<Reduced>,
}

impl Reduced {
    /// A reduction of these limits to these amounts, on top of the last one if there is one.
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
            times: last.map_or(0, |last| last.times).saturating_add(1),
            heard_at: last.map_or(Timestamp::UNIX_EPOCH, |last| last.heard_at),
        }
    }

    /// Checks whether the cost fits at `at`, when no step is due, and if not, when it will, with the
    /// steps of recovery until then. An answer more than a few steps ahead may be too early.
    pub(crate) fn check(
        &self,
        (mut rules, mut buckets): (&[Rule], &[Bucket]),
        cost: &Cost,
        at: Timestamp,
    ) -> Result<(), Shortfall> {
        let Err(mut short) = engine::check(rules, buckets, cost, at) else { return Ok(()) };
        let mut reduced = self;
        let mut step: Step;
        for _ in 0..STEPS {
            if !reduced.helps(short.wait) {
                return Err(short);
            }
            let then = reduced.next_at;
            step = reduced.step(rules, buckets);
            (rules, buckets) = (&step.rules, &step.buckets);
            match engine::check(rules, buckets, cost, then) {
                Ok(()) => return Err(Shortfall { wait: Wait::At(then), ..short }),
                Err(later) => short = later,
            }
            let Some(left) = &step.left else { return Err(short) };
            reduced = left;
        }
        let wait = if reduced.helps(short.wait) { Wait::At(reduced.next_at) } else { short.wait };
        Err(Shortfall { wait, ..short })
    }

    /// Returns whether the next step comes before the end of a wait. A wait for requests in flight
    /// may end before or after it; a cost that never fits doesn't fit then either.
    fn helps(&self, wait: Wait) -> bool {
        matches!(wait, Wait::At(time) if time >= self.next_at)
    }

    pub(crate) fn step(&self, rules: &[Rule], buckets: &[Bucket]) -> Step {
        let originals = self.original.rules.iter().map(|rule| rule.limit().amount());
        let amounts = self.amounts.iter().zip(originals);
        let amounts = amounts.map(|(&amount, original)| self.pace.recover(amount, original));
        let left = Self {
            amounts: amounts.collect(),
            next_at: self.next_at + self.pace.interval,
            times: 0,
            ..self.clone()
        };
        let next = self.original.lower(&left.amounts);
        let buckets = resize((rules, buckets), &next, self.next_at);
        Step { rules: next, buckets, left: (!left.is_whole()).then_some(left) }
    }

    /// Returns the plan of the reduced amounts.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        Arc::new(self.original.lowered(&self.amounts))
    }

    fn is_whole(&self) -> bool {
        let originals = self.original.rules.iter().map(|rule| rule.limit().amount());
        originals.eq(self.amounts.iter().copied())
    }

    /// Returns whether it will have recovered wholly.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.ends_at <= now
    }

    /// Recovers no sooner than an interval after `time`.
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

    /// Recovers at another pace from now on: the next step comes no later than by that pace.
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

/// The number of steps that an answer looks ahead: two minutes at the default interval.
const STEPS: u32 = 4;
