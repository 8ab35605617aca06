use std::collections::HashMap;
use std::sync::Arc;

use super::script::Id;
use crate::limiter::Reservation;

/// The reservations of this process that the store was asked for, by their place in memory: the
/// limiter names a request by its [`Reservation`], and that stays where it is for as long as it is
/// in here.
#[derive(Debug, Default)]
pub(super) struct Book(HashMap<usize, Entry>);

#[derive(Debug)]
struct Entry {
    reservation: Arc<Reservation>,
    id: Id,
    stage: Stage,
}

/// What became of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The store is being asked.
    Asked,
    /// It was refused, and keeps its place among those who wait.
    Refused,
    /// Granted by the store; and when it was renewed last.
    Held { renewed: u64 },
    /// Let in without the store, in this of its outages, at this time of the limiter's clock.
    LetIn { outage: u64, at: u64 },
}

impl Book {
    /// Begins to ask. Who was refused before keeps its name and its place; whether it was.
    pub(super) fn ask(
        &mut self,
        reservation: &Arc<Reservation>,
        id: impl FnOnce() -> Id,
    ) -> (Id, bool) {
        let new = || Entry { reservation: Arc::clone(reservation), id: id(), stage: Stage::Asked };
        let entry = self.0.entry(place(reservation)).or_insert_with(new);
        let queues = entry.stage == Stage::Refused;
        entry.stage = Stage::Asked;
        (entry.id, queues)
    }

    /// What the asking came to, if nobody has given it up since; `None` forgets it.
    pub(super) fn conclude(
        &mut self,
        reservation: &Arc<Reservation>,
        id: Id,
        stage: Option<Stage>,
    ) -> bool {
        let place = place(reservation);
        let Some(entry) = self.0.get_mut(&place) else { return false };
        if entry.id != id || entry.stage != Stage::Asked {
            return false;
        }
        match stage {
            Some(stage) => entry.stage = stage,
            None => drop(self.0.remove(&place)),
        }
        true
    }

    /// Let in without the store.
    pub(super) fn let_in(&mut self, reservation: &Arc<Reservation>, id: Id, stage: Stage) {
        let entry = Entry { reservation: Arc::clone(reservation), id, stage };
        self.0.insert(place(reservation), entry);
    }

    pub(super) fn remove(&mut self, reservation: &Arc<Reservation>) -> Option<(Id, Stage)> {
        self.0.remove(&place(reservation)).map(|entry| (entry.id, entry.stage))
    }

    /// Whether it is still being asked for under this name.
    pub(super) fn is_asked(&self, reservation: &Arc<Reservation>, id: Id) -> bool {
        let entry = self.0.get(&place(reservation));
        entry.is_some_and(|entry| entry.id == id && entry.stage == Stage::Asked)
    }

    /// Whether it is granted under this name, and hasn't ended.
    pub(super) fn is_held(&self, reservation: &Arc<Reservation>, id: Id) -> bool {
        let entry = self.0.get(&place(reservation));
        entry.is_some_and(|entry| entry.id == id && matches!(entry.stage, Stage::Held { .. }))
    }

    pub(super) fn renewed(&mut self, reservation: &Arc<Reservation>, id: Id, now: u64) {
        if let Some(entry) = self.0.get_mut(&place(reservation))
            && entry.id == id
            && let Stage::Held { renewed } = &mut entry.stage
        {
            *renewed = now;
        }
    }

    /// Those granted that weren't renewed since `before`.
    pub(super) fn due(&self, before: u64) -> Vec<(Arc<Reservation>, Id)> {
        let due =
            |entry: &&Entry| matches!(entry.stage, Stage::Held { renewed } if renewed < before);
        let there = |entry: &Entry| (Arc::clone(&entry.reservation), entry.id);
        self.0.values().filter(due).map(there).collect()
    }

    /// Those that were refused and whose owner went without a word, as who only waited does. They are
    /// forgotten here, and so is who was let in the moment after it had gone.
    pub(super) fn abandoned(&mut self) -> Vec<(Arc<Reservation>, Id)> {
        let abandoned = |_: &usize, entry: &mut Entry| {
            matches!(entry.stage, Stage::Refused | Stage::LetIn { .. })
                && Arc::strong_count(&entry.reservation) == 1
        };
        let gone = self.0.extract_if(abandoned).map(|(_, entry)| entry);
        let refused = gone.filter(|entry| entry.stage == Stage::Refused);
        refused.map(|entry| (entry.reservation, entry.id)).collect()
    }

    /// How many are granted.
    pub(super) fn opened(&self) -> usize {
        let open = |entry: &&Entry| matches!(entry.stage, Stage::Held { .. } | Stage::LetIn { .. });
        self.0.values().filter(open).count()
    }
}

fn place(reservation: &Arc<Reservation>) -> usize {
    Arc::as_ptr(reservation).addr()
}
