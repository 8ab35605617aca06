use std::collections::HashMap;
use std::sync::Arc;

use super::script::Id;
use crate::limiter::Reservation;
use crate::timestamp::Timestamp;

/// The reservations of this process that the store decides about, by address: the limiter
/// identifies a request by its [`Reservation`], whose address is stable while it is in this table.
#[derive(Debug, Default)]
pub(super) struct Reservations(HashMap<usize, Entry>);

#[derive(Debug)]
struct Entry {
    reservation: Arc<Reservation>,
    id: Id,
    state: ReservationState,
}

/// The state of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReservationState {
    /// Waiting for the store's decision.
    Pending,
    /// Refused, and waiting in the store's queue, with a ticket last renewed at this time.
    Queued { renewed: Timestamp },
    /// Granted by the store, and last renewed at this time.
    Held { renewed: Timestamp },
    /// Admitted without the store during outage number `outage`, at this time of the limiter's
    /// clock.
    AdmittedLocally { outage: u64, at: Timestamp },
}

impl Reservations {
    /// Starts a call for a reservation. Returns its id, which a queued reservation keeps, and
    /// whether it is queued.
    pub(super) fn begin(
        &mut self,
        reservation: &Arc<Reservation>,
        id: impl FnOnce() -> Id,
    ) -> (Id, bool) {
        let new = || Entry {
            reservation: Arc::clone(reservation),
            id: id(),
            state: ReservationState::Pending,
        };
        let entry = self.0.entry(address(reservation)).or_insert_with(new);
        let is_queued = matches!(entry.state, ReservationState::Queued { .. });
        entry.state = ReservationState::Pending;
        (entry.id, is_queued)
    }

    /// Records the state of a reservation after a call, unless the call was cancelled; `None` removes
    /// the reservation. Returns whether it was still pending.
    pub(super) fn finish_call(
        &mut self,
        reservation: &Arc<Reservation>,
        id: Id,
        state: Option<ReservationState>,
    ) -> bool {
        let address = address(reservation);
        let Some(entry) = self.0.get_mut(&address) else { return false };
        if entry.id != id || entry.state != ReservationState::Pending {
            return false;
        }
        match state {
            Some(state) => entry.state = state,
            None => drop(self.0.remove(&address)),
        }
        true
    }

    /// Records a reservation that was admitted without the store.
    pub(super) fn admit_locally(
        &mut self,
        reservation: &Arc<Reservation>,
        id: Id,
        state: ReservationState,
    ) {
        let entry = Entry { reservation: Arc::clone(reservation), id, state };
        self.0.insert(address(reservation), entry);
    }

    pub(super) fn remove(
        &mut self,
        reservation: &Arc<Reservation>,
    ) -> Option<(Id, ReservationState)> {
        self.0.remove(&address(reservation)).map(|entry| (entry.id, entry.state))
    }

    /// Returns whether a call under this id is still pending.
    pub(super) fn is_pending(&self, reservation: &Arc<Reservation>, id: Id) -> bool {
        let entry = self.0.get(&address(reservation));
        entry.is_some_and(|entry| entry.id == id && entry.state == ReservationState::Pending)
    }

    /// Returns whether the reservation is granted under this id and has not ended.
    pub(super) fn is_held(&self, reservation: &Arc<Reservation>, id: Id) -> bool {
        let entry = self.0.get(&address(reservation));
        entry.is_some_and(|entry| {
            entry.id == id && matches!(entry.state, ReservationState::Held { .. })
        })
    }

    pub(super) fn mark_renewed(&mut self, reservation: &Arc<Reservation>, id: Id, now: Timestamp) {
        if let Some(entry) = self.0.get_mut(&address(reservation))
            && entry.id == id
            && let ReservationState::Held { renewed } = &mut entry.state
        {
            *renewed = now;
        }
    }

    /// Returns the granted reservations that were last renewed before `before`.
    pub(super) fn due_for_renewal(&self, before: Timestamp) -> Vec<(Arc<Reservation>, Id)> {
        let due = |entry: &&Entry| matches!(entry.state, ReservationState::Held { renewed } if renewed < before);
        let with_id = |entry: &Entry| (Arc::clone(&entry.reservation), entry.id);
        self.0.values().filter(due).map(with_id).collect()
    }

    /// Removes the reservations whose owner has dropped them, and returns the queued ones, which
    /// the store still has to remove.
    pub(super) fn take_abandoned(&mut self) -> Vec<(Arc<Reservation>, Id)> {
        let abandoned = |_: &usize, entry: &mut Entry| {
            matches!(
                entry.state,
                ReservationState::Queued { .. } | ReservationState::AdmittedLocally { .. }
            ) && Arc::strong_count(&entry.reservation) == 1
        };
        let removed = self.0.extract_if(abandoned).map(|(_, entry)| entry);
        let queued = removed.filter(|entry| matches!(entry.state, ReservationState::Queued { .. }));
        queued.map(|entry| (entry.reservation, entry.id)).collect()
    }

    /// Removes all queued reservations, and returns them.
    pub(super) fn take_queued(&mut self) -> Vec<(Arc<Reservation>, Id)> {
        let queued =
            |_: &usize, entry: &mut Entry| matches!(entry.state, ReservationState::Queued { .. });
        let removed = self.0.extract_if(queued);
        removed.map(|(_, entry)| (entry.reservation, entry.id)).collect()
    }

    /// Returns whether a reservation waits for a decision of the store.
    pub(super) fn has_pending(&self) -> bool {
        self.0.values().any(|entry| entry.state == ReservationState::Pending)
    }

    /// Returns the queued reservations whose tickets were last renewed before `before`, and records
    /// a renewal at `now`.
    pub(super) fn renew_tickets(
        &mut self,
        before: Timestamp,
        now: Timestamp,
    ) -> Vec<(Arc<Reservation>, Id)> {
        let mut due = Vec::new();
        for entry in self.0.values_mut() {
            if let ReservationState::Queued { renewed } = &mut entry.state
                && *renewed < before
            {
                *renewed = now;
                due.push((Arc::clone(&entry.reservation), entry.id));
            }
        }
        due
    }

    /// Returns the number of admitted reservations that have not ended.
    pub(super) fn count_open(&self) -> usize {
        let open = |entry: &&Entry| {
            matches!(
                entry.state,
                ReservationState::Held { .. } | ReservationState::AdmittedLocally { .. }
            )
        };
        self.0.values().filter(open).count()
    }
}

fn address(reservation: &Arc<Reservation>) -> usize {
    Arc::as_ptr(reservation).addr()
}
