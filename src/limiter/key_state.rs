use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::answer::error::Refused;
use crate::answer::stats::{Figures, KeyStats, LimitStats};
use crate::backend::Backend;
use crate::engine::{self, Level, Shortfall, Timeline, Wait};
use crate::key::adapt::{self, Adapt, LowerLimit, Pace, Step};
use crate::key::changes::KeyChanges;
use crate::key::denial::Denial;
use crate::key::journal::Journal;
use crate::key::limits::{Granted, Limits};
use crate::key::queue::{Turn, WaitQueue, Wakers};
use crate::key::snapshot::KeySnapshot;
use crate::plan::Plan;
use crate::provider::LimitReading;
use crate::quota::{Cost, Dimension, Key};
use crate::timestamp::Timestamp;

/// All state of one key, and the only code that changes it.
///
/// It owns its parts and moves them together: a reservation is taken of the limits, recorded in the
/// journal, and noted for the comparison with headers. The parts don't know it. Waiters that a change
/// concerns are woken by [`Locked`](super::entry::Locked), after the lock is released.
#[derive(Debug)]
pub(super) struct KeyState {
    limits: Limits,
    time: Timeline,
    /// Absent as long as the key has limits and no more: nearly always.
    parts: Option<Box<Parts>>,
}

#[derive(Debug, Default)]
struct Parts {
    queue: WaitQueue,
    /// The cost that the first gate waits for, once it has looked.
    gate_cost: Option<Cost>,
    adapt: Adapt,
    journal: Option<Box<Journal>>,
    /// Waiters to be woken when the lock is released.
    wakers: Wakers,
    /// The number of changes while a request asked a backend: its answer may be out of date.
    changes: u64,
    /// Requests up to this number of arrival wait for a quota that was removed.
    removed_at: u64,
    /// The key is unknown, and unknown keys are refused.
    is_unknown: bool,
    /// The key counts elsewhere by now: its users have to look it up again.
    is_retired: bool,
}

impl Parts {
    /// Returns whether a request is admitted as if there were no parts.
    #[inline]
    fn is_passable(&self, now: Timestamp) -> bool {
        self.adapt.is_open(now) && !self.is_unknown && !self.is_retired && self.queue.is_empty()
    }

    /// Returns whether they hold nothing.
    fn is_needless(&self, now: Timestamp) -> bool {
        self.is_passable(now) && self.journal.is_none() && !self.adapt.has_trace()
    }
}

/// Time and admission.
impl KeyState {
    /// A key of which nothing is used.
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        Self { limits: Limits::new(plan), time: Timeline::default(), parts: None }
    }

    /// Moves on to a reading of the clock. Returns the time to use: it doesn't run back, unless the
    /// clock was set back.
    #[inline]
    pub(super) fn advance(
        &mut self,
        now: Timestamp,
        read: impl FnOnce() -> Timestamp,
    ) -> Timestamp {
        // The thread may have waited long for the lock, or the clock was set back: a reading under the
        // lock tells.
        let now = if self.time.is_far_ahead(now) { read() } else { now };
        let (now, back) = self.time.advance(now);
        if !back.is_zero() {
            self.rebase(back);
        }
        now
    }

    #[cold]
    fn rebase(&mut self, back: Duration) {
        self.limits.rebase(back);
        if let Some(parts) = &mut self.parts {
            parts.adapt.rebase(back);
            parts.journal.iter_mut().for_each(|journal| journal.rebase(back));
        }
    }

    /// The time of the lock.
    #[inline]
    pub(super) fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// Reserves, if no request waits and it is plain that the cost fits: the fast exit, which nearly
    /// every request takes. `false` tells nothing.
    #[inline]
    pub(super) fn reserve_if_free(&mut self, cost: &Cost, now: Timestamp) -> bool {
        if self.parts.as_ref().is_some_and(|parts| !parts.is_passable(now))
            || !self.limits.reserve_if_plain(cost, now)
        {
            return false;
        }
        if self.parts.is_some() {
            self.record(|journal, limits, now| journal.reserved(limits, cost, now));
        }
        true
    }

    /// Reserves for a newcomer, if the cost fits and no request waits.
    pub(super) fn reserve(&mut self, cost: &Cost) -> Result<(), Denial> {
        self.check(cost)?;
        self.commit(cost);
        Ok(())
    }

    /// Checks whether a newcomer is admitted: not past requests that wait.
    pub(super) fn check(&self, cost: &Cost) -> Result<(), Denial> {
        if self.limits.plan.refuses(cost, |_| false).is_some() {
            return Err(Denial::Uncounted);
        }
        match self.check_limits(cost, self.now()) {
            Err(denial) if denial.wait() == Wait::Never => Err(denial),
            _ if self.waiting() > 0 => Err(Denial::OthersWaiting),
            result => result,
        }
    }

    /// Checks whether the cost fits, whatever waits.
    pub(super) fn check_limits(&self, cost: &Cost, at: Timestamp) -> Result<(), Denial> {
        let short = self.check_buckets(cost, at).map_err(Denial::Short);
        match (short, self.check_open(at)) {
            (Err(short), _) if short.wait() == Wait::Never => Err(short),
            (_, Err(Denial::CoolingDown(Wait::At(until)))) => {
                let then = self.check_buckets(cost, until).err();
                Err(Denial::CoolingDown(then.map_or(Wait::At(until), |short| short.wait)))
            }
            (short, open) => open.and(short),
        }
    }

    /// Checks whether the key admits requests at all: it is known, and doesn't cool down.
    pub(super) fn check_open(&self, at: Timestamp) -> Result<(), Denial> {
        match &self.parts {
            Some(parts) if parts.is_unknown => Err(Denial::Unknown),
            Some(parts) if parts.adapt.cooling_until > at => {
                Err(Denial::CoolingDown(Wait::At(parts.adapt.cooling_until)))
            }
            _ => Ok(()),
        }
    }

    fn check_buckets(&self, cost: &Cost, at: Timestamp) -> Result<(), Shortfall> {
        let Self { limits, parts, .. } = self;
        let cost = &*limits.plan.clip_guesses(cost);
        match parts {
            Some(parts) => parts.adapt.check(limits, cost, at),
            None => engine::check(&limits.plan.rules, &limits.buckets, cost, at),
        }
    }

    /// Reserves, whether the cost fits or not.
    pub(super) fn commit(&mut self, cost: &Cost) {
        self.limits.commit(cost, self.now());
        self.record(|journal, limits, now| journal.reserved(limits, cost, now));
    }

    /// Takes a cost without a reservation, whether it fits or not.
    pub(super) fn charge(&mut self, cost: &Cost) {
        self.limits.charge(cost, self.now());
        self.record(|journal, limits, now| journal.charged(limits, cost, now));
    }

    /// Ends a reservation; `charged` is `None` for a request that never left.
    pub(super) fn end(&mut self, granted: Granted<'_>, charged: Option<&Cost>) {
        self.limits.end(granted, charged, self.now());
        self.record(|journal, limits, now| journal.ended(limits, granted, charged, now));
        self.changed();
    }

    /// Settles the part of one dimension that a request holds, before the request ends.
    pub(super) fn settle_early(
        &mut self,
        granted: Granted<'_>,
        dimension: &Dimension,
        charged: &Cost,
    ) {
        let settled = self.limits.settle_early(granted, dimension, charged, self.now());
        self.record(|journal, limits, now| journal.settled_early(limits, &settled, charged, now));
        self.changed();
    }

    /// Records a change of the limits that was made: in the journal, and for the comparison with
    /// headers.
    #[inline(always)]
    fn record(&mut self, record: impl FnOnce(&mut Journal, &Limits, Timestamp)) {
        let now = self.now();
        if let Self { limits, parts: Some(parts), .. } = self {
            if let Some(journal) = &mut parts.journal {
                record(journal, limits, now);
            }
            parts.adapt.note(limits, now);
        }
    }

    /// Returns the refusal of a request of this cost.
    #[cold]
    pub(super) fn refused(&self, key: &Key, denial: Denial, cost: &Cost) -> Refused {
        denial.refused(key, (&self.limits.plan, self.full()), cost, self.now())
    }
}

/// The queue.
impl KeyState {
    /// Returns the number of requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.parts.as_ref().map_or(0, |parts| parts.queue.requests())
    }

    /// Returns the queue, if there is one.
    pub(super) fn queue(&self) -> Option<&WaitQueue> {
        self.parts.as_ref().map(|parts| &parts.queue)
    }

    /// Removes a waiter, and a listener of its number, and wakes the next if it was the first.
    pub(super) fn leave(&mut self, turn: Turn) {
        let Some(parts) = &mut self.parts else { return };
        if let Some(left) = parts.queue.remove(turn) {
            if left.was_first && turn.is_gate() {
                parts.gate_cost = None;
            }
            parts.wakers.drop_later(Some(left.waker));
            parts.wakers.wake(parts.queue.next().filter(|_| left.was_first));
        }
        parts.wakers.drop_later(parts.queue.stop_listening(turn.arrival()));
    }

    /// Inserts a waiter at the place that its turn is due, or replaces the waker of one that stays.
    pub(super) fn enter(&mut self, turn: Turn, waker: &Waker) {
        let parts = self.parts_mut();
        parts.wakers.drop_later(parts.queue.set_waker(turn, waker));
        parts.queue.enter(turn, waker);
    }

    /// Replaces the wakers of a waiter and of a listener, if they are here.
    pub(super) fn stay(&mut self, turn: Turn, waker: &Waker) {
        if let Some(parts) = &mut self.parts {
            parts.wakers.drop_later(parts.queue.set_waker(turn, waker));
            let arrival = turn.arrival();
            parts.wakers.drop_later(parts.queue.set_listener_waker(arrival, waker));
        }
    }

    /// Listens to changes, for a request in the queue of another key.
    pub(super) fn listen(&mut self, turn: Turn, waker: &Waker) {
        self.parts_mut().queue.listen(turn.arrival(), waker);
    }

    /// Returns the cost that the first gate waits for.
    pub(super) fn gate_cost(&self) -> Option<&Cost> {
        self.parts.as_ref()?.gate_cost.as_ref()
    }

    pub(super) fn set_gate_cost(&mut self, cost: Cost) {
        self.parts_mut().gate_cost = Some(cost);
    }

    /// Returns whether a request with this turn waits behind another.
    pub(super) fn is_behind(&self, turn: Turn) -> bool {
        self.queue().is_some_and(|queue| queue.has_request_before(turn))
    }

    /// Returns whether a request with this number of arrival waits for a quota that was removed.
    pub(super) fn is_quota_removed(&self, arrival: u64) -> bool {
        self.parts.as_ref().is_some_and(|parts| arrival <= parts.removed_at)
    }

    /// Counts a change, and wakes the waiters that it concerns: the next, and all listeners.
    pub(super) fn changed(&mut self) {
        if let Some(parts) = &mut self.parts {
            parts.changes += 1;
            parts.wakers.wake(parts.queue.changed());
        }
    }

    /// Returns the number of changes so far.
    pub(super) fn changes(&self) -> u64 {
        self.parts.as_ref().map_or(0, |parts| parts.changes)
    }

    /// Wakes all waiters.
    pub(super) fn wake_all(&mut self) {
        if let Some(parts) = &mut self.parts {
            parts.wakers.wake(parts.queue.all_wakers());
        }
    }

    /// Ends the time under the lock: drops parts that hold nothing, since a key without any is
    /// admitted faster. Returns the wakers to be called without the lock, and whether the key has to
    /// be put on the list of dirty keys; `None` where there is nothing to do.
    #[inline]
    pub(super) fn unlock(&mut self) -> Option<(Wakers, bool)> {
        if self.parts.is_some() { self.unlock_parts() } else { None }
    }

    fn unlock_parts(&mut self) -> Option<(Wakers, bool)> {
        let now = self.now();
        let parts = self.parts.as_mut()?;
        let wakers = std::mem::take(&mut parts.wakers);
        let is_dirty = parts.journal.as_mut().is_some_and(|journal| journal.take_dirty());
        if parts.is_needless(now) {
            self.parts = None;
        }
        Some((wakers, is_dirty))
    }

    /// Returns whether the key has to be put on the list of dirty keys: for the fast exit, which has
    /// no more to do when it unlocks.
    #[inline]
    pub(super) fn take_dirty(&mut self) -> bool {
        let journal = self.parts.as_mut().and_then(|parts| parts.journal.as_mut());
        journal.is_some_and(|journal| journal.take_dirty())
    }
}

/// The plan.
impl KeyState {
    #[inline]
    pub(super) fn plan(&self) -> &Arc<Plan> {
        &self.limits.plan
    }

    /// Returns the plan of the key's quota, whatever a refusal has reduced it to.
    pub(super) fn full(&self) -> &Arc<Plan> {
        let Self { limits, parts, .. } = self;
        parts.as_ref().map_or(&limits.plan, |parts| parts.adapt.full(limits))
    }

    /// Follows another plan from now on, whole.
    pub(super) fn follow(&mut self, plan: Arc<Plan>) {
        let now = self.now();
        let Self { limits, parts, .. } = self;
        let Some(parts) = parts else {
            *limits = limits.carried(plan, now);
            return;
        };
        parts.adapt.take_reduction();
        if let Some(journal) = &mut parts.journal {
            journal.follow(limits, &plan, now);
        }
        *limits = limits.carried(plan, parts.adapt.sends_at(now));
        if let Some(journal) = &parts.journal {
            journal.hold_for_others(limits);
        }
        parts.adapt.restart_trace(limits, now);
    }

    /// Notes that the key is known or unknown from now on. `removed_at` is the last number of arrival
    /// of requests that wait for a quota that was removed.
    pub(super) fn set_unknown(&mut self, is_unknown: bool, removed_at: Option<u64>) {
        if is_unknown || self.parts.is_some() {
            let parts = self.parts_mut();
            parts.is_unknown = is_unknown;
            parts.removed_at = removed_at.unwrap_or(parts.removed_at);
        }
    }

    /// Looks at the key as if it followed another plan: without a reduction, all else counts.
    pub(super) fn under<T>(&mut self, plan: &Arc<Plan>, look: impl FnOnce(&Self) -> T) -> T {
        if plan.given.is_some() && plan.given == self.limits.plan.given {
            return look(self);
        }
        let limits = self.limits.carried(Arc::clone(plan), self.now());
        let mut parts = self.parts.take();
        let reduction = parts.as_mut().and_then(|parts| parts.adapt.take_reduction());
        let mut other = Self { limits, time: self.time, parts };
        let seen = look(&other);
        self.parts = other.parts.take();
        if let Some(parts) = &mut self.parts {
            parts.adapt.put_reduction(reduction);
        }
        seen
    }

    /// Marks the key as one that counts elsewhere by now, and wakes all waiters.
    pub(super) fn retire(&mut self) {
        self.parts_mut().is_retired = true;
        self.wake_all();
    }

    #[inline]
    pub(super) fn is_retired(&self) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.is_retired)
    }

    /// Returns whether a new key would be the same, so that this one may be forgotten.
    pub(super) fn is_idle(&self) -> bool {
        let now = self.now();
        let idle = |parts: &Parts| {
            let open = parts.journal.as_ref().is_some_and(|journal| journal.is_open());
            parts.queue.is_empty() && parts.adapt.is_idle(now) && !open
        };
        self.parts.as_deref().is_none_or(idle) && self.limits.is_fresh(now)
    }

    /// Forgets the amounts used and a cool-down. Reservations in flight stay held, and return nothing
    /// of what they took: `successor` makes the plan that the key then has.
    pub(super) fn reset(&mut self, successor: impl FnOnce(&Arc<Plan>) -> Arc<Plan>) {
        self.clear(successor);
        let now = self.now();
        if let Some(parts) = &mut self.parts {
            parts.adapt.cooling_until = Timestamp::UNIX_EPOCH;
            parts.journal.iter_mut().for_each(|journal| journal.reset(now));
        }
        self.changed();
    }

    fn clear(&mut self, successor: impl FnOnce(&Arc<Plan>) -> Arc<Plan>) {
        self.restore();
        let plan = successor(&self.limits.plan);
        self.limits.clear(plan);
    }
}

/// Evidence of the provider's limits.
impl KeyState {
    /// Takes due steps of recovery. Returns whether that ended the reduction.
    #[inline]
    pub(super) fn recover(&mut self) -> bool {
        let now = self.now();
        match self {
            Self { limits, parts: Some(parts), .. } if parts.adapt.is_due(now) => {
                parts.adapt.recover(limits, now)
            }
            _ => false,
        }
    }

    /// Changes the evidence, and with it the limits. Requests that wait look again: some may not make
    /// their deadlines any more.
    pub(super) fn adapt<T>(
        &mut self,
        change: impl FnOnce(&mut Adapt, &mut Limits, Timestamp) -> T,
    ) -> T {
        let now = self.now();
        let Self { limits, parts, .. } = self;
        let parts = parts.get_or_insert_default();
        let changed = change(&mut parts.adapt, limits, now);
        parts.adapt.note(limits, now);
        parts.wakers.wake(parts.queue.request_wakers());
        changed
    }

    /// The same; the end of the cool-down is recorded for other processes.
    pub(super) fn adapt_and_record<T>(
        &mut self,
        change: impl FnOnce(&mut Adapt, &mut Limits, Timestamp) -> T,
    ) -> T {
        let changed = self.adapt(change);
        let until = self.cooling_until();
        if let Some(journal) = self.journal_mut() {
            journal.cooling(until);
        }
        changed
    }

    /// Returns the evidence, if there may be some.
    pub(super) fn evidence(&self) -> Option<&Adapt> {
        self.parts.as_ref().map(|parts| &parts.adapt)
    }

    /// Recovers at another pace; without one the reduction ends.
    pub(super) fn set_pace(&mut self, pace: Option<Pace>) {
        let now = self.now();
        let reduced = self.parts.as_mut().filter(|parts| parts.adapt.is_reduced());
        let Some(parts) = reduced else { return };
        match pace {
            Some(pace) => parts.adapt.set_pace(pace, now),
            None => self.restore(),
        }
        self.wake_all();
    }

    /// Ends a reduction, as if the key had recovered.
    fn restore(&mut self) {
        if self.evidence().is_some_and(Adapt::is_reduced) {
            let full = Arc::clone(self.full());
            self.follow(full);
        }
    }

    /// Compares the remaining amounts of a response's headers with those expected. `round` is that of
    /// the list of dirty keys.
    pub(super) fn observe(
        &mut self,
        readings: &[LimitReading],
        granted_at: Timestamp,
        round: u64,
    ) -> Vec<LowerLimit> {
        let now = self.now();
        let (limits, parts) = (&mut self.limits, self.parts.get_or_insert_default());
        let (by_others, lower) = parts.adapt.observe(limits, readings, granted_at, now);
        if let Some(journal) = &mut parts.journal {
            for (rule, amount) in by_others {
                journal.used_by_others(rule, amount, round);
            }
        }
        lower
    }

    /// Returns when the key recovers by a step, if it is reduced.
    pub(super) fn recovers_at(&self) -> Option<Timestamp> {
        self.evidence()?.recovers_at()
    }

    /// Returns the end of the last cool-down; 0 if there was none.
    pub(super) fn cooling_until(&self) -> Timestamp {
        self.evidence().map_or(Timestamp::UNIX_EPOCH, |adapt| adapt.cooling_until)
    }

    /// Returns what other programs call the capacity of the key.
    pub(super) fn capacity(&self) -> u64 {
        adapt::capacity(&self.limits)
    }
}

/// Stores, other processes and figures.
impl KeyState {
    /// Records changes from now on: those since `since`.
    pub(super) fn track(&mut self, since: Timestamp) {
        let (limits, parts) = (&self.limits, self.parts.get_or_insert_default());
        parts.journal.get_or_insert_with(|| Box::new(Journal::new(limits, since)));
    }

    /// Returns the changes since the last collection, if there are any.
    pub(super) fn collect(&mut self, key: &Key) -> Option<KeyChanges> {
        let is_retired = self.is_retired();
        let Self { limits, parts, .. } = self;
        parts.as_mut()?.journal.as_mut()?.collect(key, limits, is_retired)
    }

    /// Applies changes of other limiters of the same store; those of buckets only where they are in
    /// this process. `renew` makes the plan after a reset, `round` is that of the list of dirty keys.
    /// Returns until when the key cools down, if that is longer now.
    pub(super) fn apply(
        &mut self,
        change: &KeyChanges,
        renew: impl FnOnce(&Arc<Plan>) -> Arc<Plan>,
        (is_local, round): (bool, u64),
    ) -> Option<Timestamp> {
        let now = self.now();
        if change.reset_at.is_some() {
            self.clear(renew);
        }
        let (limits, parts) = (&mut self.limits, self.parts.get_or_insert_default());
        if let Some(journal) = &mut parts.journal {
            if let Some(reset_at) = change.reset_at {
                parts.adapt.cooling_until = journal.apply_reset(limits, reset_at, now);
            }
            for bucket in change.buckets.iter().filter(|_| is_local) {
                journal.apply(limits, bucket, (round, now));
            }
        }
        let mut longer = None;
        match change.cooling_until {
            Some(Timestamp::UNIX_EPOCH) => parts.adapt.cooling_until = Timestamp::UNIX_EPOCH,
            Some(until) => {
                longer = parts.adapt.cool_down_until(limits, until, now).then_some(until);
            }
            None => {}
        }
        parts.adapt.note(limits, now);
        if change.cooling_until.is_some() {
            // Some may not make their deadlines any more.
            self.wake_all();
        }
        self.changed();
        longer
    }

    /// Returns the state to keep across a restart. Other limiters save the amounts that they hold.
    pub(super) fn snapshot(&self, key: &Key) -> KeySnapshot {
        let journal = self.parts.as_ref().and_then(|parts| parts.journal.as_deref());
        let by_others = |rule| journal.map_or(0, |journal| journal.held_by_others(rule));
        let buckets = self.limits.save(by_others, self.now());
        let cooling_until = Some(self.cooling_until()).filter(|&until| until > self.now());
        KeySnapshot { key: key.to_string(), buckets, cooling_until }
    }

    /// Takes the amounts that another limiter, or an earlier run, has used, where the buckets are in
    /// this process.
    pub(super) fn absorb(&mut self, snapshot: &KeySnapshot, is_local: bool) {
        let now = self.now();
        if is_local {
            self.limits.absorb(&snapshot.buckets, now);
        }
        self.record(|_, _, _| {});
        if let Some(until) = snapshot.cooling_until {
            self.adapt(|adapt, limits, now| adapt.cool_down_until(limits, until, now));
        }
    }

    /// Returns the figures of the limits as they are now; those of a backend, where one knows them.
    pub(super) fn figures(&self, key: &str, backend: Option<&Arc<dyn Backend>>) -> Figures {
        let now = self.now();
        let levels = |rules: &[_]| backend.and_then(|backend| backend.levels(key, rules));
        match self.evidence().and_then(|adapt| adapt.recovered(&self.limits, now)) {
            Some(Step { rules, buckets, .. }) => {
                let rules: Arc<[_]> = rules.into_iter().collect();
                let levels = levels(&rules);
                Figures::new(rules, &buckets, levels.as_deref(), now)
            }
            None => {
                let rules = Arc::clone(&self.limits.plan.rules);
                let levels = levels(&rules);
                Figures::new(rules, &self.limits.buckets, levels.as_deref(), now)
            }
        }
    }

    /// Returns the figures of the key.
    pub(super) fn stats(&self, key: &str, backend: Option<&Arc<dyn Backend>>) -> KeyStats {
        let figures = self.figures(key, backend);
        let limits = figures.limits().zip(&*self.full().rules).map(|((rule, level), original)| {
            LimitStats::new(rule.limit(), original.limit().amount(), level)
        });
        KeyStats {
            limits: limits.collect(),
            waiting: self.waiting(),
            cooling_until: Some(self.cooling_until()).filter(|&until| until > self.now()),
        }
    }

    /// Returns the levels of the buckets, each with the amount of its limit.
    pub(super) fn levels(&self) -> impl Iterator<Item = (u64, Level)> {
        let now = self.now();
        self.limits
            .iter()
            .map(move |(rule, bucket)| (rule.limit().amount(), bucket.level(rule, now)))
    }

    fn journal_mut(&mut self) -> Option<&mut Journal> {
        self.parts.as_mut()?.journal.as_deref_mut()
    }

    fn parts_mut(&mut self) -> &mut Parts {
        self.parts.get_or_insert_default()
    }
}
