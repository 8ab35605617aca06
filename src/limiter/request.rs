use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use smallvec::{SmallVec, smallvec};

use super::backend::{Reservation, Reserved};
use super::clock::nanos;
use super::error::{AcquireError, Refused};
use super::event::{Event, Metadata};
use super::permit::{Parts, Permit};
use super::place::{Name, Pinned};
use super::plan::Plan;
use super::scopes::{Blocked, Places, Scopes};
use super::shard::Core;
use super::slot::{Denial, Slot};
use crate::engine::Wait;
use crate::quota::{Cost, Dimension, Quota};

/// What is asked for.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) names: SmallVec<[Name; 1]>,
    pub(super) cost: Cost,
    /// Limits that came with it.
    pub(super) given: Option<Box<Quota>>,
    pub(super) metadata: Option<Metadata>,
    pub(super) deadline: Option<u64>,
    /// Until when it waits for answers that others have asked for, whatever its deadline.
    patience: Option<u64>,
    /// Behind how many it is willing to wait.
    pub(super) max_waiting: Option<usize>,
    /// Drawn on arrival, where a key has moved since.
    pub(super) number: Option<u64>,
}

/// What keeps the keys of a request where they are.
pub(super) type Pins = SmallVec<[Pinned; 2]>;

/// What a look at the keys of a request comes to.
pub(super) enum Verdict {
    Admit,
    /// The buckets are elsewhere, and nothing here speaks against asking.
    Ask,
    Wait(Blocked),
    Fail(AcquireError),
}

impl Request {
    pub(super) fn new(names: SmallVec<[Name; 1]>, cost: Cost) -> Self {
        let (given, metadata, max_waiting, number) = (None, None, None, None);
        let (deadline, patience) = (None, None);
        Self { names, cost, given, metadata, deadline, patience, max_waiting, number }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.names[0].shard.core
    }

    /// Where its keys are; one that is named twice counts once. The pins are to be kept until the
    /// keys are under their locks: of several that are new each could be forgotten for the next, and
    /// they would never be there together.
    pub(super) fn places(&self) -> Result<(Places, Pins), Refused> {
        if let [name] = &self.names[..] {
            return Ok((smallvec![name.place()?], Pins::new()));
        }
        let mut pins = Pins::new();
        for name in &self.names {
            let pin = name.pin()?;
            if !pins.iter().any(|other: &Pinned| other.place.is_same(&pin.place)) {
                pins.push(pin);
            }
        }
        Ok((pins.iter().map(|pin| pin.place.clone()).collect(), pins))
    }

    /// Puts limits that came with it in their place.
    pub(super) fn give(&self, scopes: &mut Scopes<'_>) {
        scopes.give(self.given.as_deref(), self.core());
        scopes.give_default(self.default(), self.core());
    }

    /// The limits that its keys have if no quota names them.
    pub(super) fn default(&self) -> Option<&Arc<Plan>> {
        self.names[0].default.as_ref()
    }

    /// Who stands before it may only be asking a backend: it waits for as long as an answer takes, also
    /// where it isn't willing to wait for room.
    pub(super) fn be_patient(&mut self, scopes: &Scopes<'_>) {
        let patience = self.core().backend.as_ref().map(|backend| nanos(backend.patience()));
        self.patience = patience.map(|patience| scopes.now.saturating_add(patience));
    }

    /// When it is looked at again at the latest, where it has a deadline.
    pub(super) fn latest(&self) -> Option<u64> {
        self.deadline.map(|deadline| deadline.max(self.patience.unwrap_or(0)))
    }

    pub(super) fn judge(&self, scopes: &Scopes<'_>, number: u64) -> Verdict {
        let core = self.core();
        if core.is_closed() {
            return Verdict::Fail(AcquireError::Closed);
        }
        if let Some(refused) = scopes.uncounted(&self.cost) {
            return Verdict::Fail(AcquireError::Refused(refused));
        }
        let here = core.backend.is_none();
        match scopes.blocked(&self.cost, number, here) {
            None if here => Verdict::Admit,
            None => Verdict::Ask,
            Some(blocked) => {
                let hopeless = self.hopeless(scopes, blocked);
                hopeless.map_or(Verdict::Wait(blocked), Verdict::Fail)
            }
        }
    }

    /// Why waiting on would be in vain, if it would.
    pub(super) fn hopeless(&self, scopes: &Scopes<'_>, blocked: Blocked) -> Option<AcquireError> {
        let refused = || scopes.refused(blocked, &self.cost);
        let earliest = match blocked.denial.wait() {
            Wait::Never => return Some(AcquireError::Refused(refused())),
            Wait::At(time) => time,
            Wait::Unknown => scopes.now,
        };
        let missed = |&deadline: &u64| deadline <= scopes.now || deadline < earliest;
        let deadline = match blocked.denial {
            Denial::OthersWaiting => self.latest(),
            _ => self.deadline,
        };
        let deadline = deadline.filter(missed)?;
        Some(AcquireError::DeadlineExceeded { deadline, refused: refused() })
    }

    /// The permit for what was taken; the request is over.
    pub(super) fn granted(
        &mut self,
        (parts, open): (Parts, bool),
        remote: Option<Arc<Reservation>>,
        (arrived, now): (u64, u64),
    ) -> Permit {
        let cost = std::mem::take(&mut self.cost);
        let permit = Permit::of_several(parts, remote, cost, (now, open));
        self.announce(permit.cost(), arrived, now);
        permit
    }

    fn announce(&self, reserved: &Cost, arrived: u64, now: u64) {
        let mut keys = self.names[0].shard.keys();
        keys.totals.granted += 1;
        keys.totals.waited += u64::from(now > arrived);
        drop(keys);
        let events = &self.core().events;
        if !events.are_watched() {
            return;
        }
        let metadata = || self.metadata.clone();
        for Name { key, .. } in &self.names {
            let cost = || reserved.clone();
            events.send(|| Event::Granted { key: key.clone(), cost: cost(), metadata: metadata() });
            if now > arrived {
                let duration = Duration::from_nanos(now - arrived);
                events.send(|| Event::Waited { key: key.clone(), duration, metadata: metadata() });
            }
        }
    }

    /// Tells of a failure for want of quota.
    #[inline]
    pub(super) fn failed(&self, result: &Result<Permit, AcquireError>) {
        let Err(error) = result else { return };
        match (error, error.refused()) {
            (_, Some(refused)) => self.denied(refused),
            (AcquireError::QueueFull { key, .. }, None) => self.count_denied(key, None),
            _ => {}
        }
    }

    #[cold]
    fn count_denied(&self, key: &str, dimension: Option<&Dimension>) {
        self.names[0].shard.keys().totals.denied += 1;
        self.core().denied.offer(key, dimension);
    }

    pub(super) fn denied(&self, refused: &Refused) {
        self.count_denied(&refused.key, refused.dimension.as_ref());
        self.core().events.send(|| Event::Denied {
            key: refused.key.clone(),
            dimension: refused.dimension.clone(),
            metadata: self.metadata.clone(),
        });
    }

    /// What to ask a backend for: the same as last time, unless a quota has changed since.
    pub(super) fn reservation(
        &self,
        scopes: &Scopes<'_>,
        last: Option<Arc<Reservation>>,
    ) -> Arc<Reservation> {
        let same = |last: &Arc<Reservation>| {
            let mut pairs = last.scopes.iter().zip(scopes.all());
            pairs.all(|(reserved, slot)| Arc::ptr_eq(&reserved.rules, &slot.plan.rules))
        };
        last.filter(same).unwrap_or_else(|| {
            Arc::new(Reservation {
                scopes: scopes.all().map(Reserved::of).collect(),
                cost: scopes.clip_guesses(&self.cost),
            })
        })
    }
}

impl Reserved {
    pub(super) fn of(slot: &Slot) -> Self {
        let (key, rules) = (slot.key.clone(), Arc::clone(&slot.plan.rules));
        Self { key, rules, note: AtomicU64::new(0) }
    }
}

/// Behind everybody who has drawn a number.
pub(super) const NEWCOMER: u64 = u64::MAX;
