use std::borrow::Cow;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::core::Core;
use super::entry::{Entry, Locked};
use super::key_reservation::{GrantedKey, KeyReservation, KeyReservations};
use crate::answer::error::Refused;
use crate::backend::ReserveError;
use crate::engine::{Rule, Wait};
use crate::key::denial::Denial;
use crate::key::queue::{Turn, Wakers};
use crate::plan::{Plan, ResolvedQuota};
use crate::quota::{Cost, Quota};
use crate::timestamp::Timestamp;

/// The entries of a request's keys, in the order of the request and without duplicates, followed by those of the
/// budgets that it counts to beside them.
#[derive(Default)]
pub(super) struct Entries {
    all: SmallVec<[Arc<Entry>; INLINE]>,
    /// The number of the request's own keys.
    own: usize,
}

impl Entries {
    pub(super) fn of(entry: Arc<Entry>) -> Self {
        Self { all: smallvec![entry], own: 1 }
    }

    /// Adds a key of the request.
    pub(super) fn push(&mut self, entry: Arc<Entry>) {
        if !self.contains(&entry) {
            self.all.push(entry);
            self.own += 1;
        }
    }

    /// Adds a key whose limits on spending the request counts to. Called after all of its own keys were added.
    pub(super) fn push_spending_key(&mut self, entry: Arc<Entry>) {
        if !self.contains(&entry) {
            self.all.push(entry);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.all.iter()
    }

    fn contains(&self, entry: &Arc<Entry>) -> bool {
        self.all.iter().any(|other| Arc::ptr_eq(other, entry))
    }
}

/// All keys of one request under their locks, so that changes to them are atomic.
pub(super) struct Scopes<'a> {
    /// In the order of the request.
    locked: SmallVec<[Locked<'a>; INLINE]>,
}

/// The key that blocks a request now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocker {
    /// The index of the key that blocks the request for longest.
    pub(super) scope: usize,
    pub(super) denial: Denial,
    /// The index of the key in whose queue the request has to wait: the first that is short.
    pub(super) queue: usize,
    /// The time before which the key can't admit the request, by what a backend knows.
    pub(super) earliest: Option<Timestamp>,
}

impl Blocker {
    pub(super) fn at(scope: usize, denial: Denial) -> Self {
        Self { scope, denial, queue: scope, earliest: None }
    }

    /// Returns the blocker of a request in this queue that a backend refused.
    pub(super) fn at_backend(queue: usize, error: ReserveError) -> Self {
        let (scope, denial, earliest) = match error {
            ReserveError::Short { scope, shortfall, earliest } => {
                (scope, Denial::Short(shortfall), earliest)
            }
            ReserveError::Full(wait) => (queue, Denial::Elsewhere(wait), None),
            ReserveError::Away { until } => (queue, Denial::Away(until), None),
        };
        Self { scope, denial, queue, earliest }
    }
}

impl<'a> Scopes<'a> {
    /// Locks all keys in the order of their addresses, so that two requests never deadlock.
    pub(super) fn lock(entries: &'a Entries) -> Self {
        let Entries { all: entries, own } = entries;
        if let [entry] = &entries[..] {
            return Self { locked: smallvec![entry.lock()] };
        }
        let mut order: SmallVec<[usize; INLINE]> = (0..entries.len()).collect();
        order.sort_unstable_by_key(|&index| Arc::as_ptr(&entries[index]));
        let locked = order.iter().map(|&index| (index, entries[index].lock()));
        let mut locked: SmallVec<[(usize, Locked<'a>); INLINE]> = locked.collect();
        locked.sort_unstable_by_key(|(index, _)| *index);
        let mut locked: SmallVec<[_; INLINE]> = locked.into_iter().map(|(_, lock)| lock).collect();
        // The time of a key that another thread used a moment ago may be a little ahead.
        let now = locked.iter().map(|scope| scope.now()).max().unwrap_or(Timestamp::UNIX_EPOCH);
        locked.iter_mut().for_each(|scope| scope.advance(now));
        locked[*own..].iter_mut().for_each(|scope| scope.is_spending_key = true);
        Self { locked }
    }

    /// Returns the time of all locks.
    pub(super) fn now(&self) -> Timestamp {
        self.locked[0].now()
    }

    /// Returns whether one of the keys is retired.
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

    /// Returns the request's own keys, without those of its budgets.
    pub(super) fn own(&self) -> impl Iterator<Item = &Locked<'a>> {
        self.locked.iter().filter(|scope| !scope.is_spending_key)
    }

    fn own_mut(&mut self) -> impl Iterator<Item = &mut Locked<'a>> {
        self.locked.iter_mut().filter(|scope| !scope.is_spending_key)
    }

    /// Returns the total number of changes of the keys.
    pub(super) fn changes(&self) -> u64 {
        self.iter().map(|scope| scope.changes()).sum()
    }

    /// Counts a key as the model that a provider has read from a request, unless it does so already.
    pub(super) fn count_as_model(&mut self, key: &str, read_by: Option<&str>, core: &Core) {
        let quotas = core.quotas.read();
        let is_of_model = |resolved: &ResolvedQuota| resolved.plan.provider.is_some();
        let Some(resolved) = quotas.resolve(key, read_by).filter(is_of_model) else { return };
        let scope = self.locked.iter_mut().find(|scope| *scope.key() == resolved.key);
        let Some(scope) = scope.filter(|scope| scope.is_unread()) else { return };
        let version = core.next_version();
        let given = scope.plan().given.as_ref();
        let given = given.map(|quota| quotas.given(key, quota, read_by, version));
        drop(quotas);
        let plan = given.as_ref().unwrap_or(&resolved.plan).succeed(scope.plan(), version);
        scope.follow(Arc::new(plan));
    }

    /// Applies limits that came with the request.
    pub(super) fn apply_limits(&mut self, quota: &Quota, core: &Core) {
        for scope in self.own_mut() {
            if scope.plan().given.as_ref() != Some(quota) {
                let version = core.next_version();
                let read_by = scope.plan().provider_name();
                let plan = core.quotas.read().given(scope.key(), quota, read_by, version);
                let plan = plan.succeed(scope.plan(), version);
                scope.follow(Arc::new(plan));
            }
        }
    }

    /// Applies default limits that came with the request to the keys that no quota covers.
    pub(super) fn apply_default_limits(&mut self, plan: &Arc<Plan>, core: &Core) {
        for scope in self.own_mut() {
            if scope.plan().named || scope.plan().has_rules_of(plan) {
                continue;
            }
            scope.set_unknown(false, None);
            // Nothing is held of an idle key, so many such keys can share one plan.
            let plan = match scope.is_idle() && scope.plan().version < plan.version {
                true => Arc::clone(plan),
                false => Arc::new(plan.succeed(scope.plan(), core.next_version())),
            };
            scope.follow(plan);
        }
    }

    /// Returns the key that blocks a request with this turn: of the keys that are short the one that is
    /// short for longest, or else a key with an earlier request in its queue. `is_local` is `true` if the
    /// buckets are in this process. A request that `passes_askers` doesn't wait behind requests that only
    /// wait for a backend's answers to others.
    pub(super) fn blocker(
        &self,
        cost: &Cost,
        turn: Turn,
        queue: Option<usize>,
        is_local: bool,
        passes_askers: bool,
    ) -> Option<Blocker> {
        let Some(mut blocker) = self.short_key(cost, self.now(), is_local) else {
            let denied = |(at, scope): (usize, &Locked<'_>)| {
                let cost = &*scope.part(cost);
                Some((at, scope.check_turn(turn, queue == Some(at), passes_askers, cost)?))
            };
            let (scope, denial) = self.iter().enumerate().find_map(denied)?;
            return Some(Blocker::at(scope, denial));
        };
        // A key that admits the request now may no longer do so when the others do, or its learned rate does.
        let is_exact = matches!(&self.locked[..], [key] if key.evidence().is_none());
        while !is_exact
            && let Wait::At(then) = blocker.denial.wait()
            && let Some(next) = self.short_key(cost, then, is_local)
            && next.denial.wait() > blocker.denial.wait()
        {
            blocker = Blocker { queue: blocker.queue, ..next };
        }
        Some(blocker)
    }

    /// Returns whether the cost could fit by this time if all requests in flight came back without a charge. A
    /// backend doesn't tell what is in flight, so that it may fit where a limit counts that.
    pub(super) fn may_fit_by(&self, cost: &Cost, by: Timestamp, is_local: bool) -> bool {
        may_fit_by(&self.locked, cost, by, is_local)
    }

    /// The same for one of the keys.
    pub(super) fn key_may_fit_by(
        &self,
        scope: usize,
        cost: &Cost,
        by: Timestamp,
        is_local: bool,
    ) -> bool {
        may_fit_by(&self.locked[scope..=scope], cost, by, is_local)
    }

    /// Returns the refusal of a cost that the limits cannot count: a key limits tokens, but not the kinds of
    /// tokens that the cost names, a key limits money and the cost states none, or no key limits a custom dimension of
    /// the cost.
    pub(super) fn missing_limit(&self, cost: &Cost) -> Option<Refused> {
        let is_counted = |plan: &Plan, cost: &Cost| plan.counts(cost) && plan.is_priced(cost);
        if self.iter().all(|scope| is_counted(scope.plan(), &scope.part(cost))) {
            return None;
        }
        let elsewhere = |custom: &str| self.iter().any(|scope| scope.plan().counts_custom(custom));
        self.iter().find_map(|scope| {
            let dimension = scope.plan().refused_dimension(&scope.part(cost), elsewhere)?;
            Some(Refused::missing_limit(scope.key(), dimension, self.now()))
        })
    }

    /// Returns the reason why one of the keys doesn't admit the cost, regardless of the other keys.
    pub(super) fn denial(
        &self,
        scope: usize,
        cost: &Cost,
        at: Timestamp,
        is_local: bool,
    ) -> Option<Denial> {
        let scope = self.get(scope);
        match is_local {
            true => scope.check_limits(&scope.part(cost), at).err(),
            false if scope.is_spending_key => None,
            false => scope.check_open(at).err(),
        }
    }

    /// Returns the key that is short for longest.
    fn short_key(&self, cost: &Cost, at: Timestamp, is_local: bool) -> Option<Blocker> {
        // Most requests under several keys fit all of them.
        if is_local
            && self.len() > 1
            && self.iter().all(|scope| scope.fits_fast(&scope.part(cost), at))
        {
            return None;
        }
        let denied = |scope| Some((scope, self.denial(scope, cost, at, is_local)?));
        let mut denied = (0..self.len()).filter_map(denied);
        let (first, denial) = denied.next()?;
        let longest = denied.fold((first, denial), |longest, next| {
            if next.1.wait() > longest.1.wait() { next } else { longest }
        });
        Some(Blocker { scope: longest.0, denial: longest.1, queue: first, earliest: None })
    }

    /// Returns the refusal of a request of this cost.
    pub(super) fn refused(&self, blocker: Blocker, cost: &Cost) -> Refused {
        let scope = self.get(blocker.scope);
        scope.refused(scope.key(), blocker.denial, &scope.part(cost))
    }

    /// Grants a request under every key. Reserves its cost if `is_local`; otherwise a backend reserves it.
    pub(super) fn commit(&mut self, cost: &Cost, is_local: bool) -> KeyReservations {
        let mut is_open = !is_local;
        let mut commit = |scope: &mut Locked<'_>| {
            let reserved = match scope.is_spending_key {
                true => Cow::Owned(cost.money()),
                false => scope.plan().clip_guesses(cost),
            };
            match is_local {
                true => scope.commit(&reserved),
                false => scope.note_sent(&reserved),
            }
            let reserved = match reserved {
                Cow::Owned(reserved) => Some(Box::new(reserved)),
                Cow::Borrowed(_) => None,
            };
            is_open |= scope.has_end();
            KeyReservation { key: GrantedKey::of(scope), reserved, is_open: scope.has_end() }
        };
        let first = commit(&mut self.locked[0]);
        let others = self.locked[1..].iter_mut().map(commit).collect();
        KeyReservations { first, others, is_open }
    }

    /// Notes that all keys have served a request without a long wait.
    pub(super) fn end_long_waits(&mut self) {
        self.locked.iter_mut().for_each(|scope| scope.end_long_wait());
    }

    /// Takes back a grant of this time, since the backend hasn't admitted the request. Another one may test a server then.
    pub(super) fn take_back(&mut self, cost: &Cost, granted_at: Timestamp) {
        let tested = self.own_mut().filter(|scope| scope.has_tests());
        tested.for_each(|scope| scope.note_end(cost, granted_at, false));
    }

    /// Returns whether a request that a backend has admitted can be sent now: no refusal has paused one of its keys since
    /// it asked.
    pub(super) fn are_open(&self) -> bool {
        self.own().all(|scope| scope.check_open(self.now()).is_ok())
    }

    /// Returns the cost with its estimates clipped to the amounts that all keys can hold.
    pub(super) fn clip_guesses(&self, cost: &Cost) -> Cost {
        let clip = |cost: Cost, scope: &Locked<'_>| scope.plan().clip_guesses(&cost).into_owned();
        self.own().fold(cost.clone(), clip)
    }
}

impl GrantedKey {
    fn of(scope: &Locked<'_>) -> Self {
        Self::new(Arc::clone(scope.entry()), scope.plan().version)
    }
}

impl Drop for Scopes<'_> {
    /// Releases all locks, then wakes waiters and delivers events.
    fn drop(&mut self) {
        // A single lock does the same when it is dropped.
        if self.locked.len() > 1 {
            let wakers: SmallVec<[Wakers; 2]> =
                self.locked.iter_mut().filter_map(Locked::release).collect();
            wakers.into_iter().for_each(Wakers::call);
            self.locked[0].entry().core.events.flush();
        }
    }
}

/// Returns whether the cost could fit these keys by a time if all requests in flight came back without a charge.
fn may_fit_by(keys: &[Locked<'_>], cost: &Cost, by: Timestamp, is_local: bool) -> bool {
    if !is_local {
        let holds = |key: &Locked<'_>| key.plan().rules.iter().any(Rule::holds);
        return keys.iter().any(holds) && keys.iter().all(|key| key.check_open(by).is_ok());
    }
    let free: SmallVec<[_; INLINE]> =
        keys.iter().map(|key| (key, key.limits_without_holds())).collect();
    let mut at = keys[0].now();
    for _ in 0..MAX_ROUNDS {
        let denials = free
            .iter()
            .filter_map(|(key, limits)| key.check_limits_of(limits, &key.part(cost), at).err());
        match denials.map(Denial::wait).max() {
            Some(Wait::At(then)) if then > at && then <= by => at = then,
            Some(Wait::At(_) | Wait::Never) => return false,
            Some(Wait::Unknown) | None => return true,
        }
    }
    true
}

/// The number of keys that take no allocation: a tenant, a model, the model's budget and an account.
const INLINE: usize = 4;

/// The number of times at which [`Scopes::may_fit_by`] looks: windows close and open in turn.
const MAX_ROUNDS: usize = 64;
