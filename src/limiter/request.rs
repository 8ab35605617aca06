use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use smallvec::{SmallVec, smallvec};

use super::core::Core;
use super::entry::{Entry, Locked};
use super::key_state::KeyState;
use super::permit::{Parts, Permit};
use super::scopes::{Blocked, Entries, Scopes};
use super::table::{Name, Table};
use crate::answer::code::Code;
use crate::answer::decision::Decision;
use crate::answer::error::{AcquireError, Refused};
use crate::backend::{Reservation, Reserved};
use crate::engine::Wait;
use crate::event::{Event, Metadata};
use crate::key::denial::Denial;
use crate::key::queue::Turn;
use crate::plan::Plan;
use crate::quota::{Cost, Dimension, Quota};
use crate::timestamp::Timestamp;

/// A request for a reservation: its keys, its cost and its options.
pub(super) struct Request {
    pub(super) names: SmallVec<[Name; 1]>,
    pub(super) cost: Cost,
    /// Limits that came with the request.
    limits: Option<Box<Quota>>,
    /// The dimension of the cost that those limits don't count.
    missing_limit: Option<Dimension>,
    pub(super) metadata: Option<Metadata>,
    pub(super) deadline: Option<Timestamp>,
    /// The number of requests that it is willing to wait behind.
    pub(super) max_waiting: Option<usize>,
    /// A refusal carries the figures of the keys.
    pub(super) with_figures: bool,
    /// Drawn on arrival, where a key was retired since.
    pub(super) arrival: Option<u64>,
    /// Until when it waits for answers that other requests have asked a backend for, whatever its
    /// deadline.
    patience: Option<Timestamp>,
}

/// The answer to a request under its keys, at one moment.
pub(super) enum Verdict {
    Admit,
    /// The buckets are elsewhere, and no key here speaks against asking.
    Ask,
    Wait(Blocked),
    Fail(AcquireError),
}

impl Request {
    pub(super) fn new(names: SmallVec<[Name; 1]>, cost: Cost) -> Self {
        Self {
            names,
            cost,
            limits: None,
            missing_limit: None,
            metadata: None,
            deadline: None,
            max_waiting: None,
            with_figures: false,
            arrival: None,
            patience: None,
        }
    }

    /// Sets limits for the keys of the request, unless they miss a dimension of the cost: such a request
    /// is refused, and changes no limits.
    pub(super) fn set_limits(&mut self, limits: &Quota) {
        self.missing_limit = missing_limit(&self.cost, limits);
        self.limits = self.missing_limit.is_none().then(|| Box::new(limits.clone()));
    }

    /// Decides about the request under one of its keys, without reserving.
    pub(super) fn decide(&self, name: &Name) -> Decision {
        let (core, key) = (self.core(), &name.key);
        let Some(table) = name.shard.table() else {
            return Decision::refused_by(Refused::new(
                key,
                Code::Closed,
                Wait::Never,
                core.clock.now(),
            ));
        };
        if let Some(dimension) = &self.missing_limit {
            let refused = Refused::missing_limit(key, dimension.clone(), core.clock.now());
            return Decision { stats: table.stats(key), ..Decision::refused_by(refused) };
        }
        let cost = self.cost_under(name, &table);
        match self.plan_under(name) {
            Some(plan) => table.decide_under(key, &cost, &plan),
            None => table.decide(key, &cost),
        }
    }

    /// Returns the plan of a key if the request brings its limits.
    fn plan_under(&self, name: &Name) -> Option<Arc<Plan>> {
        let quotas = self.core().quotas.read();
        match (self.limits.as_deref(), &name.default) {
            (Some(limits), _) => Some(Arc::new(quotas.given(&name.key, limits, 0))),
            (None, Some(plan)) if quotas.name_of(&name.key).is_none() => Some(Arc::clone(plan)),
            _ => None,
        }
    }

    /// Returns the cost under one of several keys, without custom dimensions that only others count.
    fn cost_under(&self, name: &Name, table: &Table) -> Cow<'_, Cost> {
        if self.names.len() == 1 || !self.cost.has_customs() {
            return Cow::Borrowed(&self.cost);
        }
        let counts = |name: &Name, custom: &str| match self.plan_under(name) {
            Some(plan) => plan.counts_custom(custom),
            None => {
                let counts = |_: &_, state: &KeyState| state.plan().counts_custom(custom);
                table.peek(&name.key, counts).unwrap_or(false)
            }
        };
        let is_kept = |custom: &str| {
            counts(name, custom) || !self.names.iter().any(|other| counts(other, custom))
        };
        Cow::Owned(self.cost.with_customs(is_kept))
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.names[0].shard.core
    }

    /// Returns whether the request has no options that need the slow path.
    #[inline]
    fn has_fast_path(&self) -> bool {
        self.limits.is_none() && self.missing_limit.is_none() && self.metadata.is_none()
    }

    /// Returns the key of a request that may take the fast path.
    #[inline]
    pub(super) fn fast_name(&self) -> Option<&Name> {
        match &self.names[..] {
            [name] if self.has_fast_path() => Some(name),
            _ => None,
        }
    }

    /// Looks its keys up, and makes those that are new. A key that is named twice counts once.
    pub(super) fn entries(&self) -> Result<Entries, Refused> {
        if let [name] = &self.names[..] {
            return Ok(smallvec![name.entry()?]);
        }
        let mut entries = Entries::new();
        for name in &self.names {
            let entry = name.entry()?;
            if !entries.iter().any(|other: &Arc<Entry>| Arc::ptr_eq(other, &entry)) {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    /// Locks its keys. `None` if one is retired: the keys have to be looked up again.
    pub(super) fn lock<'a>(&self, entries: &'a [Arc<Entry>]) -> Option<Scopes<'a>> {
        let mut scopes = Scopes::lock(entries);
        if scopes.is_retired() {
            drop(scopes);
            self.unlist_retired(entries);
            return None;
        }
        if let Some(limits) = self.limits.as_deref() {
            scopes.give(limits, self.core());
        }
        if let Some(plan) = self.default() {
            scopes.give_default(plan, self.core());
        }
        Some(scopes)
    }

    /// Takes retired entries out of the table, should the thread that retired them not have got there:
    /// the next look-up doesn't find them.
    #[cold]
    fn unlist_retired(&self, entries: &[Arc<Entry>]) {
        let retired = entries.iter().filter(|entry| entry.lock().is_retired());
        retired.for_each(|entry| self.names[0].unlist(entry));
    }

    /// Returns the limits that its keys have if no quota names them.
    pub(super) fn default(&self) -> Option<&Arc<Plan>> {
        self.names[0].default.as_ref()
    }

    /// Waits for as long as an answer of the backend takes, also where it isn't willing to wait for
    /// room: a request that comes before it may only be asking.
    pub(super) fn be_patient(&mut self, now: Timestamp) {
        let backend = self.core().backend.as_ref();
        self.patience = backend.map(|backend| now + backend.patience());
    }

    /// Returns when it is looked at again at the latest, where it has a deadline.
    pub(super) fn latest(&self) -> Option<Timestamp> {
        self.deadline.map(|deadline| deadline.max(self.patience.unwrap_or(Timestamp::UNIX_EPOCH)))
    }

    /// Judges the request at its turn: the one admission function, over one key or several.
    pub(super) fn judge(&self, scopes: &Scopes<'_>, turn: Turn) -> Verdict {
        let core = self.core();
        if core.is_closed() {
            return Verdict::Fail(AcquireError::Closed);
        }
        if let Some(refused) = self.uncounted(scopes) {
            return Verdict::Fail(AcquireError::Refused(self.with_figures_of(scopes, refused)));
        }
        match scopes.blocked(&self.cost, turn, core.is_local()) {
            None if core.is_local() => Verdict::Admit,
            None => Verdict::Ask,
            Some(blocked) => {
                let hopeless = self.hopeless(scopes, blocked);
                hopeless.map_or(Verdict::Wait(blocked), Verdict::Fail)
            }
        }
    }

    /// Returns the refusal of a cost in a dimension that no limit counts.
    fn uncounted(&self, scopes: &Scopes<'_>) -> Option<Refused> {
        match &self.missing_limit {
            None => scopes.uncounted(&self.cost),
            Some(dimension) => {
                let key = scopes.get(0).key();
                Some(Refused::missing_limit(key, dimension.clone(), scopes.now()))
            }
        }
    }

    /// Returns the error of a request that cannot succeed by waiting on.
    pub(super) fn hopeless(&self, scopes: &Scopes<'_>, blocked: Blocked) -> Option<AcquireError> {
        let refused = || self.with_figures_of(scopes, scopes.refused(blocked, &self.cost));
        let earliest = match blocked.denial.wait() {
            Wait::Never => return Some(AcquireError::Refused(refused())),
            Wait::At(time) => time,
            Wait::Unknown => scopes.now(),
        };
        let missed = |&deadline: &Timestamp| deadline <= scopes.now() || deadline < earliest;
        let deadline = match blocked.denial {
            Denial::OthersWaiting => self.latest(),
            _ => self.deadline,
        };
        let deadline = deadline.filter(missed)?;
        Some(AcquireError::DeadlineExceeded { deadline, refused: refused() })
    }

    /// Adds the figures of the keys to a refusal, where the request asked for them. Keys that share an
    /// entry have none of their own.
    fn with_figures_of(&self, scopes: &Scopes<'_>, mut refused: Refused) -> Refused {
        if self.with_figures && scopes.len() == self.names.len() {
            let backend = self.core().backend.as_ref();
            let figures = scopes.iter().map(|scope| scope.figures(scope.key(), backend));
            refused.figures = Some(Box::new(figures.collect()));
        }
        refused
    }

    /// Returns the permit for the reservations that were made; the request is over.
    pub(super) fn granted(
        &mut self,
        (parts, open): (Parts, bool),
        remote: Option<Arc<Reservation>>,
        (arrived, now): (Timestamp, Timestamp),
    ) -> Permit {
        let cost = std::mem::take(&mut self.cost);
        let permit = Permit::of_several(parts, remote, cost, (now, open));
        self.report_granted(permit.cost(), arrived, now);
        permit
    }

    fn report_granted(&self, reserved: &Cost, arrived: Timestamp, now: Timestamp) {
        let core = self.core();
        core.totals.count_granted();
        if now > arrived {
            core.totals.count_waited();
        }
        let events = &core.events;
        if !events.are_watched() {
            return;
        }
        for Name { key, .. } in &self.names {
            let (key, metadata) = (|| key.clone(), || self.metadata.clone());
            let cost = reserved.clone();
            events.send(|| Event::Granted { key: key(), cost, metadata: metadata() });
            if now > arrived {
                let duration = now - arrived;
                events.send(|| Event::Waited { key: key(), duration, metadata: metadata() });
            }
        }
    }

    /// Reports a failure for want of quota.
    #[inline]
    pub(super) fn report_failed(&self, result: &Result<Permit, AcquireError>) {
        let Err(error) = result else { return };
        match (error, error.refused()) {
            (_, Some(refused)) => self.report_denied(refused),
            (AcquireError::QueueFull { key, .. }, None) => self.count_denied(key, None, None),
            _ => {}
        }
    }

    pub(super) fn report_denied(&self, refused: &Refused) {
        self.count_denied(&refused.key, Some(refused.code), refused.dimension.as_ref());
        self.core().events.send(|| Event::Denied {
            key: refused.key.clone(),
            dimension: refused.dimension.clone(),
            metadata: self.metadata.clone(),
        });
    }

    fn count_denied(&self, key: &str, code: Option<Code>, dimension: Option<&Dimension>) {
        self.core().totals.count_denied();
        self.core().denied.offer(key, code, dimension);
    }

    /// Returns what to ask a backend for: the same as last time, unless a quota has changed since.
    pub(super) fn reservation(
        &self,
        scopes: &Scopes<'_>,
        last: Option<Arc<Reservation>>,
    ) -> Arc<Reservation> {
        let same = |last: &Arc<Reservation>| {
            let mut pairs = last.scopes.iter().zip(scopes.iter());
            pairs.all(|(reserved, scope)| Arc::ptr_eq(&reserved.rules, &scope.plan().rules))
        };
        last.filter(same).unwrap_or_else(|| {
            Arc::new(Reservation {
                scopes: scopes.iter().map(Reserved::of).collect(),
                cost: scopes.clip_guesses(&self.cost),
            })
        })
    }
}

impl Reserved {
    pub(super) fn of(scope: &Locked<'_>) -> Self {
        let (key, rules) = (scope.key().clone(), Arc::clone(&scope.plan().rules));
        Self { key, rules, note: AtomicU64::new(0) }
    }
}

/// Returns the first dimension of a cost that limits don't count. One request needs no limit.
fn missing_limit(cost: &Cost, limits: &Quota) -> Option<Dimension> {
    let tokens = [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens];
    let customs = cost.customs().map(|(name, _)| Dimension::custom(name));
    let named = tokens.into_iter().chain(customs).filter(|named| cost.amount(named) > 0);
    let several = (cost.amount(&Dimension::Requests) > 1).then_some(Dimension::Requests);
    let is_limited = |named: &Dimension| limits.limits().iter().any(|l| l.dimension() == named);
    named.chain(several).find(|named| !is_limited(named))
}
