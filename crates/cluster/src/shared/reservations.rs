use std::collections::HashMap;
use std::sync::Arc;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Rechecking, Reservation};
use tokio::sync::Notify;

use super::script::Id;

/// The reservations of this process that the store decides about, by address: the limiter
/// identifies a request by its [`Reservation`], whose address is stable while it is in this table.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    by_address: HashMap<usize, Entry>,
    /// Of the requests that were refused and wait.
    wakes: HashMap<Id, Arc<Notify>>,
}

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
    /// Refused at this time, and waiting in the store's queue.
    Queued { since: Timestamp },
    /// Granted by the store, and last renewed at this time.
    Held { renewed: Timestamp },
    /// Admitted without the store during outage number `outage`, at this time of the limiter's
    /// clock.
    AdmittedLocally { outage: u64, at: Timestamp },
}

impl Entry {
    fn is_pending(&self) -> bool {
        self.state == ReservationState::Pending
    }

    fn is_queued(&self) -> bool {
        matches!(self.state, ReservationState::Queued { .. })
    }
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
        let entry = self.by_address.entry(address(reservation)).or_insert_with(new);
        let is_queued = entry.is_queued();
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
        let Some(entry) = self.by_address.get_mut(&address) else { return false };
        if entry.id != id || !entry.is_pending() {
            return false;
        }
        if !matches!(state, Some(ReservationState::Queued { .. })) {
            self.wakes.remove(&id);
        }
        match state {
            Some(state) => entry.state = state,
            None => drop(self.by_address.remove(&address)),
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
        self.by_address.insert(address(reservation), entry);
    }

    pub(super) fn remove(
        &mut self,
        reservation: &Arc<Reservation>,
    ) -> Option<(Id, ReservationState)> {
        let entry = self.by_address.remove(&address(reservation))?;
        self.wakes.remove(&entry.id);
        Some((entry.id, entry.state))
    }

    /// Returns whether a call under this id is still pending.
    pub(super) fn is_pending(&self, reservation: &Arc<Reservation>, id: Id) -> bool {
        let entry = self.by_address.get(&address(reservation));
        entry.is_some_and(|entry| entry.id == id && entry.is_pending())
    }

    /// Returns whether the reservation is granted under this id and has not ended.
    pub(super) fn is_held(&self, reservation: &Arc<Reservation>, id: Id) -> bool {
        let entry = self.by_address.get(&address(reservation));
        entry.is_some_and(|entry| {
            entry.id == id && matches!(entry.state, ReservationState::Held { .. })
        })
    }

    pub(super) fn mark_renewed(&mut self, reservation: &Arc<Reservation>, id: Id, now: Timestamp) {
        if let Some(entry) = self.by_address.get_mut(&address(reservation))
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
        self.by_address.values().filter(due).map(with_id).collect()
    }

    /// Removes the reservations whose owner has dropped them, and returns the queued ones, which
    /// the store still has to remove.
    pub(super) fn take_abandoned(&mut self) -> Vec<(Arc<Reservation>, Id)> {
        let abandoned = |entry: &Entry| {
            matches!(
                entry.state,
                ReservationState::Queued { .. } | ReservationState::AdmittedLocally { .. }
            ) && Arc::strong_count(&entry.reservation) == 1
        };
        let removed = self.extract_if(abandoned).into_iter();
        removed.filter(Entry::is_queued).map(|entry| (entry.reservation, entry.id)).collect()
    }

    /// Removes all queued reservations, and returns them.
    pub(super) fn take_queued(&mut self) -> Vec<(Arc<Reservation>, Id)> {
        let removed = self.extract_if(Entry::is_queued).into_iter();
        removed.map(|entry| (entry.reservation, entry.id)).collect()
    }

    fn extract_if(&mut self, is_removed: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let removed = self.by_address.extract_if(|_, entry| is_removed(entry));
        let removed: Vec<_> = removed.map(|(_, entry)| entry).collect();
        for entry in &removed {
            self.wakes.remove(&entry.id);
        }
        removed
    }

    /// Returns whether a reservation waits for a decision of the store.
    pub(super) fn has_pending(&self) -> bool {
        self.by_address.values().any(Entry::is_pending)
    }

    /// Returns a future that is ready when a request that was refused should ask again.
    pub(super) fn recheck(&mut self, reservation: &Arc<Reservation>) -> Option<Rechecking> {
        let id = self.by_address.get(&address(reservation))?.id;
        let wake = Arc::clone(self.wakes.entry(id).or_default());
        Some(Box::pin(wake.notified_owned()))
    }

    /// Lets a waiting request ask again. If it asks just now and is refused, it asks once more.
    pub(super) fn wake(&mut self, id: Id) {
        if let Some(wake) = self.wakes.get(&id) {
            wake.notify_one();
        } else if self.by_address.values().any(|entry| entry.id == id && entry.is_pending()) {
            // The message has come before the refusal.
            self.wakes.entry(id).or_default().notify_one();
        }
    }

    /// Lets the requests ask again that were refused before `before`.
    pub(super) fn wake_queued(&self, before: Timestamp) {
        for entry in self.by_address.values() {
            if let ReservationState::Queued { since } = entry.state
                && since < before
                && let Some(wake) = self.wakes.get(&entry.id)
            {
                wake.notify_one();
            }
        }
    }

    /// Returns the number of admitted reservations that have not ended.
    pub(super) fn count_open(&self) -> usize {
        let open = |entry: &&Entry| {
            matches!(
                entry.state,
                ReservationState::Held { .. } | ReservationState::AdmittedLocally { .. }
            )
        };
        self.by_address.values().filter(open).count()
    }
}

fn address(reservation: &Arc<Reservation>) -> usize {
    Arc::as_ptr(reservation).addr()
}
