use std::collections::HashMap;
use std::sync::Arc;

use super::script::Id;
use crate::limiter::Reservation;
use crate::timestamp::Timestamp;

/// The reservations of this process that the store was asked for, by their place in memory: the
/// limiter names a request by its [`Reservation`], and that stays where it is for as long as it is
/// in here.
#[derive(Debug, Default)]
pub(super) struct Reservations(HashMap<usize, Entry>);

#[derive(Debug)]
struct Entry {
    reservation: Arc<Reservation>,
    id: Id,
    state: ReservationState,
}

/// What became of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReservationState {
    /// The store is being asked.
    Pending,
    /// It was refused, and keeps its place among those who wait.
    Queued,
    /// Granted by the store; and when it was renewed last.
    Held { renewed: Timestamp },
    /// Let in without the store, in this of its outages, at this time of the limiter's clock.
    AdmittedLocally { outage: u64, at: Timestamp },
}

impl Reservations {
    /// Begins to ask. Who was refused before keeps its name and its place; whether it was.
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
        let is_queued = entry.state == ReservationState::Queued;
        entry.state = ReservationState::Pending;
        (entry.id, is_queued)
    }

    /// What the asking came to, if nobody has given it up since; `None` forgets it.
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

    /// Let in without the store.
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

    /// Whether it is still being asked for under this name.
    pub(super) fn is_pending(&self, reservation: &Arc<Reservation>, id: Id) -> bool {
        let entry = self.0.get(&address(reservation));
        entry.is_some_and(|entry| entry.id == id && entry.state == ReservationState::Pending)
    }

    /// Whether it is granted under this name, and hasn't ended.
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

    /// Those granted that weren't renewed since `before`.
    pub(super) fn due_for_renewal(&self, before: Timestamp) -> Vec<(Arc<Reservation>, Id)> {
        let due = |entry: &&Entry| matches!(entry.state, ReservationState::Held { renewed } if renewed < before);
        let there = |entry: &Entry| (Arc::clone(&entry.reservation), entry.id);
        self.0.values().filter(due).map(there).collect()
    }

    /// Those that were refused and whose owner went without a word, as who only waited does. They are
    /// forgotten here, and so is who was let in the moment after it had gone.
    pub(super) fn take_abandoned(&mut self) -> Vec<(Arc<Reservation>, Id)> {
        let abandoned = |_: &usize, entry: &mut Entry| {
            matches!(
                entry.state,
                ReservationState::Queued | ReservationState::AdmittedLocally { .. }
            ) && Arc::strong_count(&entry.reservation) == 1
        };
        let gone = self.0.extract_if(abandoned).map(|(_, entry)| entry);
        let refused = gone.filter(|entry| entry.state == ReservationState::Queued);
        refused.map(|entry| (entry.reservation, entry.id)).collect()
    }

    /// How many are granted.
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
