use std::sync::Arc;
use std::task::Waker;

use compact_str::CompactString;

use super::backend::Reservation;
use super::decision::Code;
use super::error::Refused;
use super::line::Line;
use super::plan::{Buckets, Plan};
use super::stats::{KeyStats, LimitStats};
use crate::engine::{self, Shortfall, Wait};
use crate::quota::Cost;

/// One key: its plan, its buckets, and who waits for them.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: CompactString,
    pub(super) plan: Arc<Plan>,
    pub(super) buckets: Buckets,
    line: Option<Box<Line>>,
}

/// Why a request isn't let in now.
#[derive(Debug, Clone, Copy)]
pub(super) enum Denial {
    Short(Shortfall),
    CoolingDown(u64),
    OthersWaiting,
    /// A backend said so.
    Elsewhere(Wait),
    Closed,
}

impl Denial {
    pub(super) fn wait(self) -> Wait {
        match self {
            Self::Short(short) => short.wait,
            Self::CoolingDown(until) => Wait::At(until),
            Self::OthersWaiting => Wait::Unknown,
            Self::Elsewhere(wait) => wait,
            Self::Closed => Wait::Never,
        }
    }
}

impl Slot {
    pub(super) fn new(key: CompactString, plan: Arc<Plan>) -> Self {
        Self { key, buckets: plan.fresh(), plan, line: None }
    }

    /// Whether a newcomer would be let in: not past others.
    pub(super) fn check(&self, cost: &Cost, now: u64) -> Result<(), Denial> {
        match self.fits(cost, now) {
            Err(denial) if denial.wait() == Wait::Never => Err(denial),
            _ if self.waiting() > 0 => Err(Denial::OthersWaiting),
            fits => fits,
        }
    }

    /// Whether it fits, whoever waits.
    pub(super) fn fits(&self, cost: &Cost, now: u64) -> Result<(), Denial> {
        let fits = engine::check(&self.plan.rules, &self.buckets, cost, now);
        match fits {
            Err(short) if short.wait == Wait::Never => Err(Denial::Short(short)),
            fits => self.cooled(now).and(fits.map_err(Denial::Short)),
        }
    }

    /// Whether the provider's last refusal has passed.
    pub(super) fn cooled(&self, now: u64) -> Result<(), Denial> {
        let until = self.line.as_ref().map_or(0, |line| line.cooling_until);
        if until > now { Err(Denial::CoolingDown(until)) } else { Ok(()) }
    }

    /// Reserves for a newcomer, if nobody ever waited and it is plain that it fits: the way that
    /// nearly every request goes.
    #[inline]
    pub(super) fn reserve_plainly(&mut self, cost: &Cost, now: u64) -> bool {
        let Self { plan, buckets, line, .. } = self;
        let fits = line.is_none() && engine::fits(&plan.rules, buckets, cost, now);
        if fits {
            engine::commit(&plan.rules, buckets, cost, now);
        }
        fits
    }

    /// Reserves for whoever is first, or for a newcomer where nobody waits.
    pub(super) fn reserve(&mut self, cost: &Cost, now: u64) -> Result<(), Denial> {
        self.fits(cost, now)?;
        engine::commit(&self.plan.rules, &mut self.buckets, cost, now);
        Ok(())
    }

    /// Ends a reservation; `charged` is `None` for a request that never left.
    pub(super) fn end(
        &mut self,
        (version, sent, reserved): (u32, u64, &Cost),
        charged: Option<&Cost>,
        now: u64,
    ) {
        let Self { plan, buckets, .. } = self;
        let mut end = |from: usize, to: usize| {
            let (rules, buckets) = (&plan.rules[from..to], &mut buckets[from..to]);
            match charged {
                Some(actual) => engine::settle(rules, buckets, (sent, reserved), actual, now),
                None => engine::release(rules, buckets, (sent, reserved), now),
            }
        };
        if version == plan.version {
            return end(0, plan.rules.len());
        }
        // The quota has changed since: rules that came later never held anything of this request.
        for rule in (0..plan.rules.len()).filter(|&rule| plan.stood(rule, version)) {
            end(rule, rule + 1);
        }
    }

    /// The same key under another plan.
    pub(super) fn change_plan(&mut self, plan: Arc<Plan>, now: u64) {
        self.buckets = plan.carry(&self.plan, &self.buckets, now);
        self.plan = plan;
    }

    pub(super) fn line(&mut self) -> &mut Line {
        self.line.get_or_insert_default()
    }

    /// Gives a place in the queue up: its own waker, to be dropped without the lock, and whom to wake
    /// if it was the first.
    pub(super) fn leave_queue(&mut self, number: u64) -> (Option<Waker>, Option<Waker>) {
        let (was_first, own) = self.line().queue.remove(number);
        (own, self.next_up().filter(|_| was_first))
    }

    pub(super) fn waiting(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.queue.len())
    }

    /// A reservation to ask a backend for.
    pub(super) fn reservation(&mut self, cost: &Cost) -> Arc<Reservation> {
        if let Some(line) = &mut self.line {
            line.changed = false;
        }
        Reservation::new(self.key.clone(), self.plan.rules.clone(), cost.clone())
    }

    /// Everybody who waits, to be told that it is over.
    pub(super) fn everyone(&self) -> impl Iterator<Item = Waker> {
        self.line.iter().flat_map(|line| line.everyone())
    }

    /// Whom to wake after a change.
    #[inline]
    pub(super) fn changed(&mut self) -> Option<Waker> {
        let line = self.line.as_mut()?;
        line.changed = true;
        line.next_up()
    }

    /// Whom to wake after somebody has left.
    pub(super) fn next_up(&self) -> Option<Waker> {
        self.line.as_ref().and_then(|line| line.next_up())
    }

    #[cold]
    pub(super) fn refused(&self, denial: Denial, cost: &Cost, now: u64) -> Refused {
        let (code, dimension, need) = match denial {
            Denial::OthersWaiting => (Code::OthersWaiting, None, None),
            Denial::CoolingDown(_) => (Code::CoolingDown, None, None),
            Denial::Closed => (Code::Closed, None, None),
            Denial::Elsewhere(Wait::Never) => (Code::ExceedsCapacity, None, None),
            Denial::Elsewhere(_) => (Code::LimitExceeded, None, None),
            Denial::Short(short) => {
                let rule = &self.plan.rules[short.rule];
                let need = (cost.amount(rule.dimension()), rule.capacity());
                let code = Code::of(rule.limit(), short.wait);
                (code, Some(rule.dimension().clone()), Some(need))
            }
        };
        let (key, wait) = (self.key.clone(), denial.wait());
        Refused { key, code, dimension, wait, need, asked_at: now }
    }

    pub(super) fn stats(&self, now: u64) -> KeyStats {
        let cooling_until = self.line.as_ref().map(|line| line.cooling_until);
        let limits = self.plan.rules.iter().zip(&self.buckets);
        KeyStats {
            limits: limits.map(|(rule, bucket)| stats(rule, bucket.level(rule, now))).collect(),
            waiting: self.waiting(),
            cooling_until: cooling_until.filter(|&until| until > now),
        }
    }

    pub(super) fn rebase(&mut self, back: u64) {
        self.buckets.iter_mut().for_each(|bucket| bucket.rebase(back));
        if let Some(line) = &mut self.line {
            line.cooling_until = line.cooling_until.saturating_sub(back);
        }
    }
}

fn stats(rule: &engine::Rule, level: engine::Level) -> LimitStats {
    let limit = rule.limit();
    LimitStats {
        dimension: limit.dimension().clone(),
        limit: limit.amount(),
        window: limit.window(),
        used: level.used,
        held: level.held,
        available: level.available,
        fresh_at: level.fresh_at,
    }
}
