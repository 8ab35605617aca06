use std::slice;
use std::sync::Arc;
use std::task::Waker;

use compact_str::CompactString;
use smallvec::SmallVec;

use super::decision::Code;
use super::error::Refused;
use super::line::{Line, Wakers};
use super::plan::{Buckets, Plan};
use super::room::KeyRoom;
use super::trace::Trace;
use crate::engine::{self, Shortfall, Wait};
use crate::quota::{Cost, Dimension};

/// One key: its plan, its buckets, and who waits for them.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: CompactString,
    pub(super) plan: Arc<Plan>,
    pub(super) buckets: Buckets,
    pub(super) line: Option<Box<Line>>,
    /// Even while a key is here, odd while none is.
    generation: u32,
    pins: u32,
    /// Until the key is forgotten.
    room: KeyRoom,
}

/// Why a request isn't let in now.
#[derive(Debug, Clone, Copy)]
pub(super) enum Denial {
    Short(Shortfall),
    /// And when it is let in then.
    CoolingDown(Wait),
    OthersWaiting,
    /// A backend has no room, it doesn't say of what.
    Elsewhere(Wait),
    /// A backend can't be asked until then.
    Away(u64),
    /// Nobody knows the key, and such keys are refused.
    Unknown,
    /// No limit counts a dimension of the cost.
    Uncounted,
    Closed,
}

impl Denial {
    pub(super) fn wait(self) -> Wait {
        match self {
            Self::Short(short) => short.wait,
            Self::CoolingDown(wait) => wait,
            Self::OthersWaiting => Wait::Unknown,
            Self::Elsewhere(wait) => wait,
            Self::Away(until) => Wait::At(until),
            Self::Unknown | Self::Uncounted | Self::Closed => Wait::Never,
        }
    }
}

impl Slot {
    pub(super) fn new(key: CompactString, plan: Arc<Plan>) -> Self {
        let buckets = plan.fresh();
        Self { key, buckets, plan, line: None, generation: 0, pins: 0, room: None }
    }

    /// The same, for a key that takes this room.
    pub(super) fn in_room(self, room: KeyRoom) -> Self {
        Self { room, ..self }
    }

    /// A vacant slot for another key.
    pub(super) fn occupy(&mut self, key: CompactString, plan: Arc<Plan>, room: KeyRoom) {
        let generation = self.generation.wrapping_add(1);
        *self = Self { generation, ..Self::new(key, plan).in_room(room) };
    }

    /// Forgets the key.
    pub(super) fn vacate(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        (self.key, self.line, self.room) = (CompactString::default(), None, None);
        self.buckets.clear();
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether a key is here.
    pub(super) fn is_taken(&self) -> bool {
        self.generation.is_multiple_of(2)
    }

    pub(super) fn pin(&mut self) {
        self.pins += 1;
    }

    pub(super) fn unpin(&mut self) {
        self.pins -= 1;
    }

    /// Whether a key is here that could as well be new.
    pub(super) fn is_idle(&self, now: u64) -> bool {
        let open = |line: &Line| line.ledger.as_ref().is_some_and(|ledger| ledger.is_open());
        let idle = |line: &Line| line.is_idle(now) && !open(line);
        let nobody = self.pins == 0 && self.line.as_deref().is_none_or(idle);
        let mut buckets = self.plan.rules.iter().zip(&self.buckets);
        self.is_taken() && nobody && buckets.all(|(rule, bucket)| bucket.is_fresh(rule, now))
    }

    /// Lets a newcomer in, if it fits and nobody waits. The guesses of its cost are clipped.
    #[inline(never)]
    pub(super) fn enter(&mut self, cost: &Cost, now: u64) -> Result<(), Denial> {
        self.tidy(now);
        self.check(cost, now)?;
        self.commit(cost, now);
        Ok(())
    }

    /// Whether a newcomer would be let in: not past others.
    pub(super) fn check(&self, cost: &Cost, now: u64) -> Result<(), Denial> {
        if self.plan.refuses(cost, |_| false).is_some() {
            return Err(Denial::Uncounted);
        }
        match self.fits(cost, now) {
            Err(denial) if denial.wait() == Wait::Never => Err(denial),
            _ if self.waiting() > 0 => Err(Denial::OthersWaiting),
            fits => fits,
        }
    }

    /// Whether it fits, whoever waits.
    pub(super) fn fits(&self, cost: &Cost, now: u64) -> Result<(), Denial> {
        let short = self.short(cost, now);
        match (short, self.passable(now)) {
            (Err(short), _) if short.wait == Wait::Never => Err(Denial::Short(short)),
            (_, Err(Denial::CoolingDown(Wait::At(until)))) => {
                let then = self.short(cost, until).err().map_or(Wait::At(until), |s| s.wait);
                Err(Denial::CoolingDown(then))
            }
            (short, passable) => passable.and(short.map_err(Denial::Short)),
        }
    }

    /// Whether anybody is let in at all: the key is known, and the provider's last refusal has passed.
    pub(super) fn passable(&self, now: u64) -> Result<(), Denial> {
        match &self.line {
            Some(line) if line.barred => Err(Denial::Unknown),
            Some(line) if line.cooling_until > now => {
                Err(Denial::CoolingDown(Wait::At(line.cooling_until)))
            }
            _ => Ok(()),
        }
    }

    /// Reserves for a newcomer, if nobody waits and it is plain that it fits: the way that nearly
    /// every request goes.
    #[inline]
    pub(super) fn reserve_plainly(&mut self, cost: &Cost, now: u64) -> bool {
        let Self { plan, buckets, line, .. } = self;
        let open = line.as_ref().is_none_or(|line| line.is_mere_trace(now));
        let fits = open && plan.counts(cost) && engine::fits(&plan.rules, buckets, cost, now);
        if fits {
            engine::commit(&plan.rules, buckets, cost, now);
            self.book(cost, now);
        }
        fits
    }

    /// Reserves, whether it fits or not.
    pub(super) fn commit(&mut self, cost: &Cost, now: u64) {
        engine::commit(&self.plan.rules, &mut self.buckets, cost, now);
        self.book(cost, now);
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
            end(0, plan.rules.len());
        } else {
            // The quota has changed since: rules that came later never held anything of this request.
            let stood = (0..plan.rules.len()).filter(|&rule| plan.stood(rule, version));
            stood.for_each(|rule| end(rule, rule + 1));
        }
        self.book_end((version, sent, reserved), charged, now);
    }

    /// Settles what a request holds of one dimension, before it ends.
    pub(super) fn settle_early(
        &mut self,
        version: u32,
        dimension: &Dimension,
        (reserved, charged): (&Cost, &Cost),
        now: u64,
    ) {
        for at in 0..self.plan.rules.len() {
            let Self { plan, buckets, .. } = self;
            let rule = &plan.rules[at];
            if rule.holds() && rule.dimension() == dimension && plan.stood(at, version) {
                let (rule, bucket) = (slice::from_ref(rule), &mut buckets[at..=at]);
                // What holds has no time of sending that would matter.
                engine::settle(rule, bucket, (now, reserved), charged, now);
                self.book_early(at, charged, now);
            }
        }
    }

    /// The same key under another plan, whole.
    pub(super) fn change_plan(&mut self, plan: Arc<Plan>, now: u64) {
        if let Some(line) = &mut self.line {
            line.reduced = None;
        }
        self.rebook(&plan, now);
        self.buckets = plan.carry(&self.plan, &self.buckets, self.sends_at(now));
        self.plan = plan;
        self.hold_others();
        self.retrace(now);
    }

    /// When something may be sent again. Buckets are carried over as they will be then: one that was
    /// drained for the end of a cool-down lacks no more than it can hold.
    pub(super) fn sends_at(&self, now: u64) -> u64 {
        self.line.as_ref().map_or(now, |line| line.cooling_until.max(now))
    }

    /// Looks at the key as if it followed another plan.
    pub(super) fn under<T>(
        &mut self,
        plan: Arc<Plan>,
        now: u64,
        look: impl FnOnce(&Self) -> T,
    ) -> T {
        if plan.given.is_some() && plan.given == self.plan.given {
            return look(self);
        }
        let buckets = plan.carry(&self.plan, &self.buckets, now);
        let mut line = self.line.take();
        let reduced = line.as_mut().and_then(|line| line.reduced.take());
        let mut other = Self { buckets, line, ..Self::new(self.key.clone(), plan) };
        let seen = look(&other);
        self.line = other.line.take();
        if let Some(line) = &mut self.line {
            line.reduced = reduced;
        }
        seen
    }

    /// Forgets what was used; what is in flight stays held, and gives nothing back of what it took.
    /// `successor` is for the plan that the key then has.
    pub(super) fn forget(&mut self, now: u64, successor: impl FnOnce(&Arc<Plan>) -> Arc<Plan>) {
        self.restore(now);
        self.plan = successor(&self.plan);
        for (rule, bucket) in self.plan.rules.iter().zip(&mut self.buckets) {
            *bucket = bucket.cleared(rule);
        }
    }

    /// The same, and that its provider refused it.
    pub(super) fn reset(&mut self, now: u64, successor: impl FnOnce(&Arc<Plan>) -> Arc<Plan>) {
        self.forget(now, successor);
        if let Some(line) = &mut self.line {
            line.cooling_until = 0;
        }
        self.book_reset(now);
        self.tidy(now);
    }

    /// Makes an end of a line that nobody stands in: a key without one is let in faster.
    pub(super) fn tidy(&mut self, now: u64) {
        if self.line.as_ref().is_some_and(|line| line.is_needless(now)) {
            self.line = None;
        }
    }

    /// The line, made if there is none.
    pub(super) fn line(&mut self) -> &mut Line {
        self.line.get_or_insert_default()
    }

    /// What is compared with what the provider says, and the limits and buckets that it is about.
    pub(super) fn traced(&mut self) -> Option<(&mut Trace, &Plan, &Buckets)> {
        let trace = self.line.as_mut()?.trace.as_deref_mut()?;
        Some((trace, &self.plan, &self.buckets))
    }

    /// The line, if there is one, to look at.
    pub(super) fn seen(&self) -> Option<&Line> {
        self.line.as_deref()
    }

    /// The line, if there is one.
    pub(super) fn there(&mut self) -> Option<&mut Line> {
        self.line.as_deref_mut()
    }

    /// Gives a place in the queue up, if there is one, and hands on if it was the first.
    pub(super) fn leave_queue(&mut self, number: u64, now: u64, wakers: &mut Wakers) {
        let Some(line) = &mut self.line else { return };
        let (was_first, own) = line.queue.remove(number);
        wakers.drop_later(own);
        wakers.drop_later(line.asking.remove(number).1);
        wakers.wake(self.next_up().filter(|_| was_first));
        self.tidy(now);
    }

    pub(super) fn waiting(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.queue.len())
    }

    /// Whether somebody waits who came before this number.
    pub(super) fn is_behind(&self, number: u64) -> bool {
        self.line.as_ref().is_some_and(|line| line.queue.is_before(number))
    }

    /// Whether whoever drew this number waits for a quota that was removed.
    pub(super) fn is_ousted(&self, number: u64) -> bool {
        self.line.as_ref().is_some_and(|line| number <= line.ousted)
    }

    /// Everybody who waits, to be looked at again.
    pub(super) fn everyone(&self) -> impl Iterator<Item = Waker> {
        self.line.iter().flat_map(|line| line.everyone())
    }

    /// Whom to wake after a change.
    #[inline]
    pub(super) fn changed(&mut self) -> SmallVec<[Waker; 2]> {
        let Some(line) = &mut self.line else { return SmallVec::new() };
        line.changes += 1;
        line.next_up().into_iter().chain(line.asking.everyone()).collect()
    }

    /// How often something has changed while somebody was here.
    pub(super) fn changes(&self) -> u64 {
        self.line.as_ref().map_or(0, |line| line.changes)
    }

    /// Whether the key counts elsewhere by now.
    #[inline]
    pub(super) fn is_moved(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.moved)
    }

    /// Whom to wake after somebody has left.
    pub(super) fn next_up(&self) -> Option<Waker> {
        self.line.as_ref().and_then(|line| line.next_up())
    }

    #[cold]
    pub(super) fn refused(&self, denial: Denial, cost: &Cost, now: u64) -> Refused {
        let cost = &*self.plan.clip_guesses(cost);
        let (code, dimension, need) = match denial {
            Denial::OthersWaiting => (Code::OthersWaiting, None, None),
            Denial::CoolingDown(_) => (Code::CoolingDown, None, None),
            Denial::Unknown => (Code::UnknownModel, None, None),
            Denial::Uncounted => (Code::MissingLimit, self.plan.refuses(cost, |_| false), None),
            Denial::Closed => (Code::Closed, None, None),
            Denial::Elsewhere(Wait::Never) => (Code::ExceedsCapacity, None, None),
            Denial::Elsewhere(_) => (Code::LimitExceeded, None, None),
            Denial::Away(_) => (Code::Unavailable, None, None),
            Denial::Short(short) => match self.full().rules.get(short.rule) {
                Some(rule) => {
                    let most = match short.wait {
                        Wait::Never => rule.largest(),
                        _ => rule.capacity(),
                    };
                    let need = (cost.amount(rule.dimension()), most);
                    let code = Code::of(rule.limit(), short.wait);
                    (code, Some(rule.dimension().clone()), Some(need))
                }
                // The quota has changed since a backend was asked.
                None => (Code::LimitExceeded, None, None),
            },
        };
        let (key, wait) = (self.key.clone(), denial.wait());
        Refused { key, code, dimension, wait, need, asked_at: now }
    }

    /// The refusal of a cost in a dimension that no limit counts.
    #[cold]
    pub(super) fn uncounted(&self, dimension: Dimension, now: u64) -> Refused {
        let (key, code, wait) = (self.key.clone(), Code::MissingLimit, Wait::Never);
        Refused { key, code, dimension: Some(dimension), wait, need: None, asked_at: now }
    }

    pub(super) fn rebase(&mut self, back: u64) {
        self.buckets.iter_mut().for_each(|bucket| bucket.rebase(back));
        if let Some(line) = &mut self.line {
            line.cooling_until = line.cooling_until.saturating_sub(back);
            if let Some(reduced) = &mut line.reduced {
                reduced.rebase(back);
            }
            if let Some(trace) = &mut line.trace {
                trace.rebase(back);
            }
            if let Some(ledger) = &mut line.ledger {
                ledger.rebase(back);
            }
        }
    }
}
