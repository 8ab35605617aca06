use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::core::Core;
use super::entry::{Entry, Locked};
use super::permit::{Part, Parts, Taken};
use crate::answer::error::Refused;
use crate::backend::ReserveError;
use crate::engine::Wait;
use crate::key::denial::Denial;
use crate::key::queue::{Turn, Wakers};
use crate::plan::Plan;
use crate::quota::{Cost, Quota};
use crate::timestamp::Timestamp;

/// The entries of a request's keys, in the order of the request; none twice.
pub(super) type Entries = SmallVec<[Arc<Entry>; 1]>;

/// All keys of one request under their locks: changes to them happen at one moment.
pub(super) struct Scopes<'a> {
    /// In the order of the request.
    locked: SmallVec<[Locked<'a>; 2]>,
}

/// The reason why a request is not admitted now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocked {
    /// The key that blocks it for longest, and why.
    pub(super) scope: usize,
    pub(super) denial: Denial,
    /// The key in whose queue it belongs: of those that are short the one named first.
    pub(super) queue: usize,
}

impl Blocked {
    pub(super) fn at(scope: usize, denial: Denial) -> Self {
        Self { scope, denial, queue: scope }
    }

    /// The answer of a backend to a request in this queue.
    pub(super) fn elsewhere(queue: usize, error: ReserveError) -> Self {
        let (scope, denial) = match error {
            ReserveError::Short { scope, shortfall } => (scope, Denial::Short(shortfall)),
            ReserveError::Full(wait) => (queue, Denial::Elsewhere(wait)),
            ReserveError::Away { until } => (queue, Denial::Away(until)),
        };
        Self { scope, denial, queue }
    }
}

impl<'a> Scopes<'a> {
    /// Locks all keys, in the order of their addresses: two requests never wait for each other's.
    pub(super) fn lock(entries: &'a [Arc<Entry>]) -> Self {
        let mut order: SmallVec<[usize; 4]> = (0..entries.len()).collect();
        order.sort_unstable_by_key(|&index| Arc::as_ptr(&entries[index]));
        let locked = order.iter().map(|&index| (index, entries[index].lock()));
        let mut locked: SmallVec<[(usize, Locked<'a>); 2]> = locked.collect();
        locked.sort_unstable_by_key(|(index, _)| *index);
        let mut locked: SmallVec<[Locked<'a>; 2]> = locked.into_iter().map(|(_, l)| l).collect();
        // A key that another thread used a moment ago may be a little ahead.
        if locked.len() > 1 {
            let now = locked.iter().map(|scope| scope.now()).max().unwrap_or(Timestamp::UNIX_EPOCH);
            locked.iter_mut().for_each(|scope| scope.advance(now));
        }
        Self { locked }
    }

    /// The time of all locks.
    pub(super) fn now(&self) -> Timestamp {
        self.locked[0].now()
    }

    /// Returns whether one of the keys counts elsewhere by now.
    pub(super) fn is_retired(&self) -> bool {
        self.locked.iter().any(|scope| scope.is_retired())
    }

    pub(super) fn len(&self) -> usize {
        self.locked.len()
    }

    pub(super) fn get(&self, scope: usize) -> &Locked<'a> {
        &self.locked[scope]
    }

    pub(super) fn get_mut(&mut self, scope: usize) -> &mut Locked<'a> {
        &mut self.locked[scope]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Locked<'a>> {
        self.locked.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Locked<'a>> {
        self.locked.iter_mut()
    }

    /// Returns the number of changes at all of the keys.
    pub(super) fn changes(&self) -> u64 {
        self.iter().map(|scope| scope.changes()).sum()
    }

    /// Gives the keys the limits that came with the request.
    pub(super) fn give(&mut self, quota: &Quota, core: &Core) {
        for scope in &mut self.locked {
            if scope.plan().given.as_ref() != Some(quota) {
                let version = core.version();
                let plan = core.quotas.read().given(scope.key(), quota, version);
                let plan = plan.succeed(scope.plan(), version);
                scope.follow(Arc::new(plan));
            }
        }
    }

    /// Gives the keys that no quota names the limits that came with the request for such keys.
    pub(super) fn give_default(&mut self, plan: &Arc<Plan>, core: &Core) {
        for scope in &mut self.locked {
            if scope.plan().named || scope.plan().has_rules_of(plan) {
                continue;
            }
            scope.set_unknown(false, None);
            // Nothing is held of an idle key: many such keys have one plan together.
            let plan = match scope.is_idle() && scope.plan().version < plan.version {
                true => Arc::clone(plan),
                false => Arc::new(plan.succeed(scope.plan(), core.version())),
            };
            scope.follow(plan);
        }
    }

    /// Returns the reason why a request with this turn is not admitted: of the keys that are short the
    /// one that is for longest, else one at which other requests wait that came before. `is_local`
    /// says whether the buckets are in this process.
    pub(super) fn blocked(&self, cost: &Cost, turn: Turn, is_local: bool) -> Option<Blocked> {
        let Some(mut blocked) = self.short(cost, self.now(), is_local) else {
            let scope = self.iter().position(|scope| scope.is_behind(turn))?;
            return Some(Blocked::at(scope, Denial::OthersWaiting));
        };
        // A key that has room now may not have it any more when the others do.
        while let Wait::At(then) = blocked.denial.wait()
            && let Some(next) = self.short(cost, then, is_local)
            && next.denial.wait() > blocked.denial.wait()
        {
            blocked = Blocked { queue: blocked.queue, ..next };
        }
        Some(blocked)
    }

    /// Returns the refusal of a cost that no room would help: a key limits tokens, but none of the
    /// kinds of tokens that the cost names, or none of the keys limits a custom dimension of it.
    pub(super) fn uncounted(&self, cost: &Cost) -> Option<Refused> {
        if self.iter().all(|scope| scope.plan().counts(cost)) {
            return None;
        }
        let elsewhere = |custom: &str| self.iter().any(|scope| scope.plan().counts_custom(custom));
        self.iter().find_map(|scope| {
            let dimension = scope.plan().refuses(cost, elsewhere)?;
            Some(Refused::missing_limit(scope.key(), dimension, self.now()))
        })
    }

    /// Returns why one of the keys has no room, whatever room the others have.
    pub(super) fn denial(
        &self,
        scope: usize,
        cost: &Cost,
        at: Timestamp,
        is_local: bool,
    ) -> Option<Denial> {
        let scope = self.get(scope);
        if is_local { scope.check_limits(cost, at).err() } else { scope.check_open(at).err() }
    }

    fn short(&self, cost: &Cost, at: Timestamp, is_local: bool) -> Option<Blocked> {
        let denied = |scope| Some((scope, self.denial(scope, cost, at, is_local)?));
        let mut denied = (0..self.len()).filter_map(denied);
        let (first, denial) = denied.next()?;
        let longest = denied.fold((first, denial), |longest, next| {
            if next.1.wait() > longest.1.wait() { next } else { longest }
        });
        Some(Blocked { scope: longest.0, denial: longest.1, queue: first })
    }

    pub(super) fn refused(&self, blocked: Blocked, cost: &Cost) -> Refused {
        let scope = self.get(blocked.scope);
        scope.refused(scope.key(), blocked.denial, cost)
    }

    /// Takes the cost of every key. Returns the parts of the permit, and whether it holds something
    /// until it ends.
    pub(super) fn commit(&mut self, cost: &Cost) -> (Parts, bool) {
        let mut parts = self.parts();
        let mut open = false;
        for (scope, part) in self.locked.iter_mut().zip(&mut parts) {
            let clipped = scope.plan().clip_guesses(cost);
            scope.commit(&clipped);
            if let Cow::Owned(clipped) = clipped {
                part.reserved = Some(Box::new(clipped));
            }
            open |= scope.plan().holds;
        }
        (parts, open)
    }

    /// Returns the cost, with guesses of at most the amounts that all keys can hold.
    pub(super) fn clip_guesses(&self, cost: &Cost) -> Cost {
        let clip = |cost: Cost, scope: &Locked<'_>| scope.plan().clip_guesses(&cost).into_owned();
        self.iter().fold(cost.clone(), clip)
    }

    /// Returns the parts of a permit for all keys.
    pub(super) fn parts(&self) -> Parts {
        let part = |scope: &Locked<'_>| Part::new(Arc::clone(scope.entry()), scope.plan().version);
        self.iter().map(part).map(Taken::new).collect()
    }
}

impl Drop for Scopes<'_> {
    /// Releases all locks, and wakes waiters and delivers events only then.
    fn drop(&mut self) {
        let wakers: SmallVec<[Wakers; 2]> =
            self.locked.iter_mut().filter_map(Locked::release).collect();
        wakers.into_iter().for_each(Wakers::call);
        self.locked[0].entry().core.events.flush();
    }
}
