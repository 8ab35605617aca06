use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use paceline::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::reservation_id::ReservationId;
use crate::budget::{Budget, BudgetExceeded, BudgetPermit};
use crate::client_address::ClientAddress;
use crate::config::Serve;
use crate::expiry_map::{self, BATCH, ExpiryMap};
use paceline::Timestamp;
use paceline::limiter::{Limiter, Metadata, Permit};
use paceline::quota::Cost;

/// The open and recently ended reservations of clients. Each ends exactly once: it is settled,
/// released, or, if neither happens in time, it expires and is charged as reserved.
///
/// Permits come from the caller; reservations are local to this instance. All times are those of the
/// limiter's clock.
pub(crate) struct Reservations {
    table: Mutex<Table>,
    /// The reservations that are open or waited for.
    admissions: Arc<Budget>,
    /// Signals that the next expiry time became earlier.
    earlier: Notify,
    /// Cancelled when all reservations have ended.
    closed: CancellationToken,
}

/// An open reservation.
#[derive(Debug, Clone)]
pub(super) struct Reservation {
    pub(super) keys: Arc<[Key]>,
    pub(super) cost: Cost,
    pub(super) granted_at: Timestamp,
    /// The time from the grant or the last renewal until expiry.
    pub(super) ttl: Duration,
    pub(super) expires_at: Timestamp,
    pub(super) metadata: Option<Metadata>,
}

/// A reservation that ended.
#[derive(Debug, Clone)]
pub(super) struct EndedReservation {
    pub(super) outcome: Outcome,
    pub(super) granted_at: Timestamp,
    pub(super) ended_at: Timestamp,
    /// The charged cost; `None` if it was released.
    pub(super) charged: Option<Cost>,
}

/// The outcome of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Charged the actual cost.
    Settled,
    /// Not charged.
    Released,
    /// Charged as reserved, because it was neither settled nor released in time.
    Expired,
    /// Charged as reserved, because the server stopped.
    Closed,
}

/// The state of a reservation.
#[derive(Debug)]
pub(super) enum ReservationState {
    Open(Reservation),
    Ended(EndedReservation),
}

/// The reason why a reservation cannot be ended or renewed.
#[derive(Debug)]
pub(super) enum ReservationError {
    /// No reservation has this id, or it ended long ago.
    Unknown,
    Ended(EndedReservation),
}

struct Table {
    open: ExpiryMap<ReservationId, Open>,
    ended: HashMap<ReservationId, EndedReservation>,
    /// Ended reservations, approximately in the order of their ends.
    order: VecDeque<(Timestamp, ReservationId)>,
    /// The time for which ended reservations are remembered, and their maximum number.
    kept_for: Duration,
    max: usize,
    is_closed: bool,
}

struct Open {
    permit: Permit,
    reservation: Reservation,
    _admission: BudgetPermit,
}

impl Reservations {
    /// Creates the reservations of a server.
    pub(crate) fn new(serve: &Serve) -> Self {
        Self::with_capacity(serve.bounds.reservations, serve.reservation_ttl)
    }

    /// Creates a table of at most `max` open reservations. It remembers as many ended ones for
    /// `kept_for`.
    fn with_capacity(max: usize, kept_for: Duration) -> Self {
        let table = Table {
            open: ExpiryMap::new(),
            ended: HashMap::new(),
            order: VecDeque::new(),
            kept_for,
            max,
            is_closed: false,
        };
        let (earlier, closed) = (Notify::new(), CancellationToken::new());
        Self { table: Mutex::new(table), admissions: Budget::new(max), earlier, closed }
    }

    /// Returns permission for another reservation of a client, unless it has as many as it may.
    pub(super) fn admit(&self, client: ClientAddress) -> Result<BudgetPermit, BudgetExceeded> {
        self.admissions.share(client).take(1)
    }

    /// Opens a reservation that holds a permit.
    ///
    /// # Errors
    /// Returns the permit if the server has stopped, or if no id can be generated.
    pub(super) fn open(
        &self,
        permit: Permit,
        admission: BudgetPermit,
        reservation: Reservation,
    ) -> Result<ReservationId, Permit> {
        let Some(id) = ReservationId::random() else { return Err(permit) };
        let mut table = self.table.lock();
        if table.is_closed {
            return Err(permit);
        }
        let first = table.open.insert(
            id,
            reservation.expires_at,
            Open { permit, reservation, _admission: admission },
        );
        drop(table);
        if first {
            self.earlier.notify_one();
        }
        Ok(id)
    }

    /// Ends a reservation with its actual cost, which `charged` computes from the reserved cost.
    ///
    /// # Errors
    /// Returns a [`ReservationError`], or the error of `charged`; the reservation stays open then.
    pub(super) fn settle<E: From<ReservationError>>(
        &self,
        id: ReservationId,
        now: Timestamp,
        charged: impl FnOnce(&Cost) -> Result<Cost, E>,
    ) -> Result<EndedReservation, E> {
        self.expire_one(id, now);
        let mut table = self.table.lock();
        let open = table.open.get(id).ok_or_else(|| table.missing(id, now))?;
        let charged = charged(&open.reservation.cost)?;
        let (_, open) = table.open.remove(id).expect("the entry was found above");
        let (permit, ended) = table.end(id, open, Outcome::Settled, now, Some(charged.clone()));
        drop(table);
        permit.settle(&charged);
        Ok(ended)
    }

    /// Ends a reservation without a charge.
    ///
    /// # Errors
    /// Returns a [`ReservationError`].
    pub(super) fn release(
        &self,
        id: ReservationId,
        now: Timestamp,
    ) -> Result<EndedReservation, ReservationError> {
        self.expire_one(id, now);
        let mut table = self.table.lock();
        let (_, open) = table.open.remove(id).ok_or_else(|| table.missing(id, now))?;
        let (permit, ended) = table.end(id, open, Outcome::Released, now, None);
        drop(table);
        permit.release();
        Ok(ended)
    }

    /// Extends a reservation by `ttl` from now, or by its previous lifetime.
    ///
    /// # Errors
    /// Returns a [`ReservationError`].
    pub(super) fn renew(
        &self,
        id: ReservationId,
        now: Timestamp,
        ttl: Option<Duration>,
    ) -> Result<Reservation, ReservationError> {
        self.expire_one(id, now);
        let mut table = self.table.lock();
        let (_, mut open) = table.open.remove(id).ok_or_else(|| table.missing(id, now))?;
        open.reservation.ttl = ttl.unwrap_or(open.reservation.ttl);
        open.reservation.expires_at = now + open.reservation.ttl;
        let reservation = open.reservation.clone();
        if table.open.insert(id, reservation.expires_at, open) {
            self.earlier.notify_one();
        }
        Ok(reservation)
    }

    /// Returns the state of a reservation.
    ///
    /// # Errors
    /// Returns [`ReservationError::Unknown`].
    pub(super) fn get(
        &self,
        id: ReservationId,
        now: Timestamp,
    ) -> Result<ReservationState, ReservationError> {
        self.expire_one(id, now);
        let table = self.table.lock();
        match table.open.get(id) {
            Some(open) => Ok(ReservationState::Open(open.reservation.clone())),
            None => match table.missing(id, now) {
                ReservationError::Ended(ended) => Ok(ReservationState::Ended(ended)),
                unknown => Err(unknown),
            },
        }
    }

    /// Ends expired reservations, and forgets those that ended long ago. Returns the time of the next
    /// expiry, which is not in the future if one batch was not enough.
    pub(super) fn expire(&self, now: Timestamp) -> Option<Timestamp> {
        let mut table = self.table.lock();
        let due = table.open.expire(now).into_iter();
        let end = |(id, at, open)| table.end_as_reserved(id, open, Outcome::Expired, at);
        let expired: Vec<_> = due.map(end).collect();
        table.forget(now, BATCH);
        let next = table.next();
        drop(table);
        // Dropped permits are charged as reserved. That wakes waiters, so it is done outside the lock.
        drop(expired);
        next
    }

    /// Ends this reservation if it has expired, without ending others that expired earlier.
    fn expire_one(&self, id: ReservationId, now: Timestamp) {
        let mut table = self.table.lock();
        if table.open.get(id).is_none_or(|open| now < open.reservation.expires_at) {
            return;
        }
        let (at, open) = table.open.remove(id).expect("the entry was found above");
        let expired = table.end_as_reserved(id, open, Outcome::Expired, at);
        drop(table);
        drop(expired);
    }

    /// Ends all reservations, which are charged as reserved; no more can be opened.
    pub(crate) fn close(&self, now: Timestamp) {
        let mut table = self.table.lock();
        table.is_closed = true;
        let open = table.open.drain();
        let expired: Vec<_> =
            open.map(|(id, open)| table.end_as_reserved(id, open, Outcome::Closed, now)).collect();
        drop(table);
        drop(expired);
        self.closed.cancel();
    }

    /// Ends and forgets reservations at their times until all have ended.
    pub(super) async fn run(self: Arc<Self>, limiter: Limiter) {
        expiry_map::run(&limiter, &self.earlier, &self.closed, |now| self.expire(now)).await;
    }
}

impl Table {
    fn missing(&self, id: ReservationId, now: Timestamp) -> ReservationError {
        let known = self.ended.get(&id).filter(|ended| !self.is_old(ended.ended_at, now));
        known.cloned().map_or(ReservationError::Unknown, ReservationError::Ended)
    }

    /// Records the end of a removed reservation; the caller drops the permit, which charges it as
    /// reserved.
    fn end_as_reserved(
        &mut self,
        id: ReservationId,
        open: Open,
        outcome: Outcome,
        ended_at: Timestamp,
    ) -> Permit {
        let reserved = open.reservation.cost.clone();
        self.end(id, open, outcome, ended_at, Some(reserved)).0
    }

    /// Records the end of a removed reservation; the caller ends the permit.
    fn end(
        &mut self,
        id: ReservationId,
        open: Open,
        outcome: Outcome,
        ended_at: Timestamp,
        charged: Option<Cost>,
    ) -> (Permit, EndedReservation) {
        let ended = EndedReservation {
            outcome,
            granted_at: open.reservation.granted_at,
            ended_at,
            charged,
        };
        self.ended.insert(id, ended.clone());
        self.order.push_back((ended_at, id));
        if self.order.len() > self.max {
            self.forget_oldest();
        }
        // Forget more than are added, so that none accumulate.
        self.forget(ended_at, 2);
        (open.permit, ended)
    }

    /// Forgets at most `max` reservations that ended long ago.
    fn forget(&mut self, now: Timestamp, max: usize) {
        let mut left = max;
        while left > 0 && self.order.front().is_some_and(|(at, _)| self.is_old(*at, now)) {
            self.forget_oldest();
            left -= 1;
        }
    }

    /// Returns the time at which the next reservation expires or is forgotten.
    fn next(&self) -> Option<Timestamp> {
        let old = self.order.front().and_then(|(at, _)| at.checked_add(self.kept_for));
        [self.open.next_expiry(), old].into_iter().flatten().min()
    }

    fn is_old(&self, ended_at: Timestamp, now: Timestamp) -> bool {
        ended_at + self.kept_for <= now
    }

    fn forget_oldest(&mut self) {
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
