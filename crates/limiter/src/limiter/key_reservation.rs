use std::sync::Arc;

use smallvec::SmallVec;

use super::entry::Entry;
use crate::key::limits::Granted;
use crate::plan::Plan;
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// The reservations of one request, under each of its keys.
pub(super) struct KeyReservations {
    pub(super) first: KeyReservation,
    pub(super) others: SmallVec<[KeyReservation; 2]>,
    /// `true` if the limiter has something to do when the permit ends.
    pub(super) is_open: bool,
}

/// A reservation under one key.
#[derive(Debug)]
pub(super) struct KeyReservation {
    pub(super) key: GrantedKey,
    /// The reserved cost, if its estimates were clipped to the amounts that this key can hold; `None` if
    /// it is the cost of the permit.
    pub(super) reserved: Option<Box<Cost>>,
    /// `true` if the key has something to do when the reservation ends, even if exactly that is charged.
    pub(super) is_open: bool,
}

/// A key that granted a reservation.
#[derive(Debug)]
pub(super) struct GrantedKey {
    pub(super) entry: Arc<Entry>,
    /// The version of the plan that granted the reservation.
    pub(super) version: u32,
}

impl GrantedKey {
    #[inline]
    pub(super) fn new(entry: Arc<Entry>, version: u32) -> Self {
        Self { entry, version }
    }

    /// Ends the reservation under this key. Returns whether its limits count all of the charge.
    pub(super) fn end(
        &self,
        granted_at: Timestamp,
        reserved: &Cost,
        charged: Option<&Cost>,
    ) -> bool {
        let mut locked = self.entry.lock();
        let granted = Granted { version: self.version, at: granted_at, cost: reserved };
        locked.end(granted, charged);
        charged.is_none_or(|charged| locked.plan().counts(charged))
    }

    /// Settles one dimension before the reservation ends.
    pub(super) fn settle_early(&self, dimension: &Dimension, reserved: &Cost, charged: &Cost) {
        let mut locked = self.entry.lock();
        let granted = Granted { version: self.version, at: locked.now(), cost: reserved };
        locked.settle_early(granted, dimension, charged);
    }

    /// Notes the end of a reservation that a backend keeps, which may admit the next waiter.
    pub(super) fn end_remote(&self, granted_at: Timestamp, reserved: &Cost, was_sent: bool) {
        self.entry.lock().note_end(reserved, granted_at, was_sent);
    }

    pub(super) fn plan(&self) -> Arc<Plan> {
        Arc::clone(self.entry.lock().plan())
    }
}
