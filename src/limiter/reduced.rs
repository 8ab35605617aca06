use std::sync::Arc;

use smallvec::SmallVec;

use super::event::Event;
use super::plan::{Buckets, Plan, Rules, resize};
use super::reduction::Pace;
use super::shard::Core;
use super::slot::Slot;
use crate::engine::{self, Bucket, Rule, Shortfall, Wait};
use crate::quota::{Cost, Dimension, Limit, Window};

/// A key that has less than its quota, because its provider refused it, until it has recovered.
///
/// It recovers as time passes, whoever looks: what is due is done before anything else is done to
/// the key, and whoever only asks is answered as if it had been.
#[derive(Debug, Clone)]
pub(super) struct Reduced {
    pace: Pace,
    /// The plan of its quota.
    original: Arc<Plan>,
    /// What each of its limits is now.
    amounts: SmallVec<[u64; 3]>,
    /// When it recovers by a step, and when it has recovered wholly.
    next_at: u64,
    ends_at: u64,
    /// When it was reduced last: refusals of requests sent before belong to that.
    pub(super) reduced_at: u64,
    /// How often it was reduced since it last recovered by a step.
    pub(super) times: u32,
    /// When the last update from elsewhere that was followed was sent.
    pub(super) heard_at: u64,
}

/// What is there after a step of recovery.
pub(super) struct Step {
    pub(super) rules: Rules,
    pub(super) buckets: Buckets,
    /// `None` once nothing is reduced any more.
    left: Option<Reduced>,
}

impl Reduced {
    /// Whether the cost fits at `at`, when no step is due, and if not, when it will, with recovery
    /// on the way. An answer that lies more than a few steps ahead may be too early.
    fn check(
        &self,
        (mut rules, mut buckets): (&[Rule], &[Bucket]),
        cost: &Cost,
        at: u64,
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

    /// Whether the next step comes before the end of a wait. When others end isn't known: by then
    /// it may have recovered or not. What never fits doesn't fit then either.
    fn helps(&self, wait: Wait) -> bool {
        matches!(wait, Wait::At(time) if time >= self.next_at)
    }

    fn step(&self, rules: &[Rule], buckets: &[Bucket]) -> Step {
        let originals = self.original.rules.iter().map(|rule| rule.limit().amount());
        let amounts = self.amounts.iter().zip(originals);
        let amounts = amounts.map(|(&amount, original)| self.pace.recover(amount, original));
        let left = Self {
            amounts: amounts.collect(),
            next_at: self.next_at.saturating_add(self.pace.interval),
            times: 0,
            ..self.clone()
        };
        let next = self.original.lower(&left.amounts);
        let buckets = resize((rules, buckets), &next, self.next_at);
        Step { rules: next, buckets, left: (!left.is_whole()).then_some(left) }
    }

    fn plan(&self) -> Arc<Plan> {
        Arc::new(self.original.lowered(&self.amounts))
    }

    fn is_whole(&self) -> bool {
        let originals = self.original.rules.iter().map(|rule| rule.limit().amount());
        originals.eq(self.amounts.iter().copied())
    }

    /// Whether it will have recovered wholly.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.ends_at <= now
    }

    /// Recovers no sooner than an interval after `time`.
    pub(super) fn recover_after(&mut self, time: u64) {
        self.next_at = self.next_at.max(time.saturating_add(self.pace.interval));
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
        let more = u64::try_from(steps.unwrap_or(0).saturating_sub(1)).unwrap_or(u64::MAX);
        self.ends_at = self.next_at.saturating_add(self.pace.interval.saturating_mul(more));
    }

    /// Recovers at another pace from now on: its next step comes no later than that has it.
    fn go_on(&mut self, pace: Pace, now: u64) {
        self.pace = pace;
        self.next_at = self.next_at.min(now.saturating_add(pace.interval));
        self.recover_after(0);
    }

    pub(super) fn rebase(&mut self, back: u64) {
        for time in [&mut self.next_at, &mut self.ends_at, &mut self.reduced_at] {
            *time = time.saturating_sub(back);
        }
    }
}

impl Slot {
    pub(super) fn reduced(&self) -> Option<&Reduced> {
        self.seen()?.reduced.as_deref()
    }

    /// The plan of the key's quota, whatever it is reduced to.
    pub(super) fn full(&self) -> &Arc<Plan> {
        self.reduced().map_or(&self.plan, |reduced| &reduced.original)
    }

    /// When it recovers by a step, if it is reduced.
    pub(super) fn recovers_at(&self) -> Option<u64> {
        self.reduced().map(|reduced| reduced.next_at)
    }

    /// Why the buckets have no room, if they have none.
    pub(super) fn short(&self, cost: &Cost, at: u64) -> Result<(), Shortfall> {
        let cost = &*self.plan.clip_guesses(cost);
        let Some(reduced) = self.reduced() else {
            return engine::check(&self.plan.rules, &self.buckets, cost, at);
        };
        match self.recovered(at) {
            None => reduced.check((&self.plan.rules, &self.buckets), cost, at),
            Some(Step { rules, buckets, left: Some(left) }) => {
                left.check((&rules, &buckets), cost, at)
            }
            Some(Step { rules, buckets, left: None }) => engine::check(&rules, &buckets, cost, at),
        }
    }

    /// What is there at `at`, if recovery has changed it by then.
    pub(super) fn recovered(&self, at: u64) -> Option<Step> {
        let due = |reduced: &Reduced| reduced.next_at <= at;
        let mut step = self.reduced().filter(|r| due(r))?.step(&self.plan.rules, &self.buckets);
        while let Some(left) = step.left.take_if(|left| due(left)) {
            step = left.step(&step.rules, &step.buckets);
        }
        Some(step)
    }

    /// Recovers as far as is due.
    #[inline]
    pub(super) fn recover(&mut self, now: u64, core: &Core) {
        if self.recovers_at().is_some_and(|at| at <= now) {
            self.recover_by_steps(now, core);
        }
    }

    #[cold]
    fn recover_by_steps(&mut self, now: u64, core: &Core) {
        let Some(Step { buckets, left, .. }) = self.recovered(now) else { return };
        self.plan = left.as_ref().map_or_else(|| Arc::clone(self.full()), Reduced::plan);
        self.buckets = buckets;
        self.line().reduced = left.map(Box::new);
        self.retrace(now);
        if self.reduced().is_none() {
            self.tidy(now);
            let (key, capacity) = (self.key.clone(), self.capacity());
            core.events.post(|| Event::Recovered { key, capacity });
        }
    }

    /// Gives each limit this amount, if that is less than it has; says whether any has less now.
    pub(super) fn lower(&mut self, pace: Pace, now: u64, amount: impl Fn(&Limit) -> u64) -> bool {
        let lower = |rule: &Rule| amount(rule.limit()).clamp(1, rule.limit().amount());
        let amounts: SmallVec<[u64; 3]> = self.plan.rules.iter().map(lower).collect();
        if self.plan.rules.iter().map(|rule| rule.limit().amount()).eq(amounts.iter().copied()) {
            return false;
        }
        let (times, heard_at) = self.reduced().map_or((0, 0), |r| (r.times, r.heard_at));
        let original = Arc::clone(self.full());
        let (next_at, ends_at, times) = (0, 0, times.saturating_add(1));
        let mut reduced =
            Reduced { pace, original, amounts, next_at, ends_at, reduced_at: now, times, heard_at };
        reduced.recover_after(self.sends_at(now));
        let plan = reduced.plan();
        self.buckets = resize((&self.plan.rules, &self.buckets), &plan.rules, self.sends_at(now));
        self.plan = plan;
        self.line().reduced = Some(Box::new(reduced));
        self.retrace(now);
        true
    }

    /// Follows another pace of reduction; `None` reduces nothing. Says whether that changed anything.
    pub(super) fn follow_pace(&mut self, pace: Option<Pace>, now: u64) -> bool {
        let from = self.sends_at(now);
        let Some(reduced) = self.there().and_then(|line| line.reduced.as_deref_mut()) else {
            return false;
        };
        match pace {
            Some(pace) => reduced.go_on(pace, from),
            None => self.restore(now),
        }
        true
    }

    /// Ends a reduction, as if it had recovered.
    pub(super) fn restore(&mut self, now: u64) {
        if self.reduced().is_some() {
            let original = Arc::clone(self.full());
            self.change_plan(original, now);
        }
    }

    /// What other programs call the capacity of the key: the amount of its first limit per less than
    /// a day, else of requests in flight; 0 where it has neither.
    pub(super) fn capacity(&self) -> u64 {
        let rates = || self.plan.rules.iter().map(Rule::limit).filter(|limit| is_rate(limit));
        let first = rates().find(|limit| *limit.dimension() != Dimension::Concurrency);
        first.or_else(|| rates().next()).map_or(0, Limit::amount)
    }
}

/// Whether a limit is one that a refusal reduces: not an amount per day or longer.
pub(super) fn is_rate(limit: &Limit) -> bool {
    *limit.dimension() == Dimension::Concurrency || limit.window() < Window::DAY
}

/// How far ahead an answer looks: two minutes at the default interval.
const STEPS: u32 = 4;
