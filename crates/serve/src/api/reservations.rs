use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tollgate::Key;

use super::id::Id;
use crate::config::Serve;
use crate::expiring::{self, Expiring, MOST_AT_ONCE};
use tollgate::Timestamp;
use tollgate::limiter::{Limiter, Metadata, Permit};
use tollgate::quota::Cost;

/// The reservations that clients hold. Each ends exactly once: settled, released, or, if nobody says
/// anything, at its expiry, charged as reserved. How it ended is known for a while after.
///
/// It doesn't admit anybody: a permit comes in, and goes out with its end. Nor is it known elsewhere:
/// whoever ends one asks the instance that has granted it. All times are those of the limiter's clock.
pub(crate) struct Reservations {
    table: Mutex<Table>,
    /// One for each that may be open, or waited for.
    places: Arc<Semaphore>,
    /// The next expiry is nearer than it was.
    nearer: Notify,
    /// Done when all have ended.
    closed: CancellationToken,
}

/// Room for one more reservation.
#[derive(Debug)]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
}

/// A reservation, as its client asked for it.
#[derive(Debug, Clone)]
pub(super) struct Reservation {
    pub(super) keys: Arc<[Key]>,
    pub(super) cost: Cost,
    pub(super) granted_at: Timestamp,
    /// For how long it is held, from its grant or its last renewal.
    pub(super) ttl: Duration,
    pub(super) expires_at: Timestamp,
    pub(super) metadata: Option<Metadata>,
}

/// How a reservation has ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) how: How,
    pub(super) granted_at: Timestamp,
    pub(super) ended_at: Timestamp,
    /// What it was charged.
    pub(super) charged: Option<Cost>,
}

/// How a reservation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Charged what it took.
    Settled,
    /// Charged nothing.
    Released,
    /// Charged as reserved: nobody said anything.
    Expired,
    /// Charged as reserved: the server has stopped.
    Closed,
}

/// What is known of an id.
#[derive(Debug)]
pub(super) enum Known {
    Open(Reservation),
    Ended(Ended),
}

/// Why a reservation can't be ended or renewed.
#[derive(Debug)]
pub(super) enum Missing {
    /// Nobody has it, or it ended long ago.
    Unknown,
    Ended(Ended),
}

struct Table {
    open: Expiring<Id, Open>,
    ended: HashMap<Id, Ended>,
    /// In the order in which they were taken out: about that of their ends.
    order: VecDeque<(Timestamp, Id)>,
    /// For how long ended ones are known, and how many.
    kept_for: Duration,
    most: usize,
    closed: bool,
}

struct Open {
    permit: Permit,
    about: Reservation,
    _place: Place,
}

impl Reservations {
    /// Those of a server that is configured so.
    pub(crate) fn of(serve: &Serve) -> Self {
        Self::new(serve.bounds.reservations, serve.reservation_ttl)
    }

    /// Room for so many; ended ones are known for so long, and as many.
    fn new(most: usize, kept_for: Duration) -> Self {
        let table = Table {
            open: Expiring::new(),
            ended: HashMap::new(),
            order: VecDeque::new(),
            kept_for,
            most,
            closed: false,
        };
        let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let (nearer, closed) = (Notify::new(), CancellationToken::new());
        Self { table: Mutex::new(table), places, nearer, closed }
    }

    /// Room for one more, if there is any.
    pub(super) fn place(&self) -> Option<Place> {
        let permit = Arc::clone(&self.places).try_acquire_owned();
        permit.ok().map(|permit| Place { _permit: permit })
    }

    /// Holds a permit under a new name until somebody ends it or it expires.
    ///
    /// # Errors
    /// The permit, if the server has stopped or no name can be made.
    pub(super) fn open(
        &self,
        permit: Permit,
        place: Place,
        about: Reservation,
    ) -> Result<Id, Permit> {
        let Some(id) = Id::random() else { return Err(permit) };
        let mut table = self.table.lock();
        if table.closed {
            return Err(permit);
        }
        let first = table.open.insert(id, about.expires_at, Open { permit, about, _place: place });
        drop(table);
        if first {
            self.nearer.notify_one();
        }
        Ok(id)
    }

    /// Ends it as it turned out, given what was reserved.
    ///
    /// # Errors
    /// [`Missing`], or what `charged` answers; it stays open then.
    pub(super) fn settle<E: From<Missing>>(
        &self,
        id: Id,
        now: Timestamp,
        charged: impl FnOnce(&Cost) -> Result<Cost, E>,
    ) -> Result<Ended, E> {
        self.expire_one(id, now);
        let mut table = self.table.lock();
        let open = table.open.get(id).ok_or_else(|| table.missing(id, now))?;
        let charged = charged(&open.about.cost)?;
        let (_, open) = table.open.remove(id).expect("was found above");
        let (permit, ended) = table.end((id, open), (How::Settled, now), Some(charged.clone()));
        drop(table);
        permit.settle(&charged);
        Ok(ended)
    }

    /// Ends it as one that was never used.
    ///
    /// # Errors
    /// [`Missing`].
    pub(super) fn release(&self, id: Id, now: Timestamp) -> Result<Ended, Missing> {
        self.expire_one(id, now);
        let mut table = self.table.lock();
        let (_, open) = table.open.remove(id).ok_or_else(|| table.missing(id, now))?;
        let (permit, ended) = table.end((id, open), (How::Released, now), None);
        drop(table);
        permit.release();
        Ok(ended)
    }

    /// Holds it for so long from now on, or else for as long as at first.
    ///
    /// # Errors
    /// [`Missing`].
    pub(super) fn renew(
        &self,
        id: Id,
        now: Timestamp,
        ttl: Option<Duration>,
    ) -> Result<Reservation, Missing> {
        self.expire_one(id, now);
        let mut table = self.table.lock();
        let (_, mut open) = table.open.remove(id).ok_or_else(|| table.missing(id, now))?;
        open.about.ttl = ttl.unwrap_or(open.about.ttl);
        open.about.expires_at = now + open.about.ttl;
        let about = open.about.clone();
        if table.open.insert(id, about.expires_at, open) {
            self.nearer.notify_one();
        }
        Ok(about)
    }

    /// What is known of it.
    ///
    /// # Errors
    /// [`Missing::Unknown`].
    pub(super) fn look(&self, id: Id, now: Timestamp) -> Result<Known, Missing> {
        self.expire_one(id, now);
        let table = self.table.lock();
        match table.open.get(id) {
            Some(open) => Ok(Known::Open(open.about.clone())),
            None => match table.missing(id, now) {
                Missing::Ended(ended) => Ok(Known::Ended(ended)),
                unknown => Err(unknown),
            },
        }
    }

    /// Ends those whose time has come, and forgets those that ended long ago; says when there is more to
    /// do: by `now` if there is more than is done at once.
    pub(super) fn expire(&self, now: Timestamp) -> Option<Timestamp> {
        let mut table = self.table.lock();
        let due = table.open.expire(now).into_iter();
        let end = |(id, at, open)| table.end_as_reserved((id, open), (How::Expired, at));
        let over: Vec<_> = due.map(end).collect();
        table.forget(now, MOST_AT_ONCE);
        let next = table.next();
        drop(table);
        // Dropped is charged as reserved; not under the lock, since it wakes others.
        drop(over);
        next
    }

    /// Ends this one if its time has come: it is over then, however many others are to be ended first.
    fn expire_one(&self, id: Id, now: Timestamp) {
        let mut table = self.table.lock();
        if table.open.get(id).is_none_or(|open| now < open.about.expires_at) {
            return;
        }
        let (at, open) = table.open.remove(id).expect("was found above");
        let over = table.end_as_reserved((id, open), (How::Expired, at));
        drop(table);
        drop(over);
    }

    /// Ends all, and takes no more.
    pub(crate) fn close(&self, now: Timestamp) {
        let mut table = self.table.lock();
        table.closed = true;
        let open = table.open.drain();
        let over: Vec<_> =
            open.map(|open| table.end_as_reserved(open, (How::Closed, now))).collect();
        drop(table);
        drop(over);
        self.closed.cancel();
    }

    /// Ends each at its time, and forgets it at its own, until all of them have ended.
    pub(super) async fn run(self: Arc<Self>, limiter: Limiter) {
        expiring::run(&limiter, &self.nearer, &self.closed, |now| self.expire(now)).await;
    }
}

impl Table {
    fn missing(&self, id: Id, now: Timestamp) -> Missing {
        let known = self.ended.get(&id).filter(|ended| !self.is_old(ended.ended_at, now));
        known.cloned().map_or(Missing::Unknown, Missing::Ended)
    }

    /// Keeps how one ended that was taken out; its permit is the caller's to drop.
    fn end_as_reserved(&mut self, (id, open): (Id, Open), end: (How, Timestamp)) -> Permit {
        let reserved = open.about.cost.clone();
        self.end((id, open), end, Some(reserved)).0
    }

    /// Keeps how one ended that was taken out; its permit is the caller's to end.
    fn end(
        &mut self,
        (id, open): (Id, Open),
        (how, ended_at): (How, Timestamp),
        charged: Option<Cost>,
    ) -> (Permit, Ended) {
        let ended = Ended { how, granted_at: open.about.granted_at, ended_at, charged };
        self.ended.insert(id, ended.clone());
        self.order.push_back((ended_at, id));
        if self.order.len() > self.most {
            self.forget_first();
        }
        // More than come, so that none stay.
        self.forget(ended_at, 2);
        (open.permit, ended)
    }

    /// Forgets so many at most that ended long ago.
    fn forget(&mut self, now: Timestamp, most: usize) {
        let mut left = most;
        while left > 0 && self.order.front().is_some_and(|(at, _)| self.is_old(*at, now)) {
            self.forget_first();
            left -= 1;
        }
    }

    /// When the next one ends or is forgotten.
    fn next(&self) -> Option<Timestamp> {
        let old = self.order.front().and_then(|(at, _)| at.checked_add(self.kept_for));
        [self.open.next(), old].into_iter().flatten().min()
    }

    fn is_old(&self, ended_at: Timestamp, now: Timestamp) -> bool {
        ended_at + self.kept_for <= now
    }

    fn forget_first(&mut self) {
        if let Some((_, id)) = self.order.pop_front() {
            self.ended.remove(&id);
        }
    }
}

impl fmt::Debug for Reservations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.table.lock().open.len();
        f.debug_struct("Reservations").field("open", &open).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
