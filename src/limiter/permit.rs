use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use super::backend::{Ending, Reservation};
use super::event::Event;
use super::shard::Place;
use crate::quota::Cost;

/// A granted reservation.
///
/// Dropping it keeps the charge, as reserved, and ends it: `let _permit = limiter.acquire(..)` is
/// rate limiting. Say [`settle`](Self::settle) when it is known what the request really took, and
/// [`release`](Self::release) if it never left.
pub struct Permit {
    place: Place,
    cost: Cost,
    granted_at: u64,
    version: u32,
    /// Whether the limiter has something to do when it ends.
    open: bool,
    ended: bool,
    remote: Option<Arc<Reservation>>,
}

impl Permit {
    pub(super) fn new(place: Place, cost: Cost, granted_at: u64, version: u32, open: bool) -> Self {
        Self { place, cost, granted_at, version, open, ended: false, remote: None }
    }

    pub(super) fn remote(place: Place, reservation: Arc<Reservation>, granted_at: u64) -> Self {
        let cost = reservation.cost.clone();
        let remote = Some(reservation);
        Self { place, cost, granted_at, version: 0, open: true, ended: false, remote }
    }

    /// What was reserved.
    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    /// When it was granted, in nanoseconds since the epoch.
    pub fn granted_at(&self) -> u64 {
        self.granted_at
    }

    /// The request has left and took `charged`. Anything above the reservation becomes debt.
    #[inline]
    pub fn settle(mut self, charged: &Cost) {
        self.end_as(charged);
        self.ended = true;
    }

    /// The request never left: gives everything back.
    pub fn release(mut self) {
        self.end(None);
        self.ended = true;
    }

    #[inline]
    fn end_as(&self, charged: &Cost) {
        if self.open || *charged != self.cost {
            self.end(Some(charged));
        } else {
            self.announce(Some(charged));
        }
    }

    fn end(&self, charged: Option<&Cost>) {
        if let Some(reservation) = &self.remote {
            self.end_remote(reservation, charged);
        } else {
            let (mut keys, now) = self.place.shard.lock();
            let slot = &mut keys.slots[self.place.slot];
            slot.end((self.version, self.granted_at, &self.cost), charged, now);
            let next = slot.changed();
            drop(keys);
            next.into_iter().for_each(Waker::wake);
        }
        self.announce(charged);
    }

    fn end_remote(&self, reservation: &Arc<Reservation>, charged: Option<&Cost>) {
        if let Some(backend) = &self.place.shard.core.backend {
            let ending = charged.cloned().map_or(Ending::Released, Ending::Settled);
            backend.end(reservation, ending);
        }
        let next = self.place.shard.keys().slots[self.place.slot].changed();
        next.into_iter().for_each(Waker::wake);
    }

    #[inline]
    fn announce(&self, charged: Option<&Cost>) {
        self.place.shard.core.events.send(|| Event::Settled {
            key: self.place.key(),
            reserved: self.cost.clone(),
            charged: charged.cloned(),
        });
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("key", &self.place.key())
            .field("cost", &self.cost)
            .field("granted_at", &self.granted_at)
            .finish_non_exhaustive()
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if !self.ended {
            self.end_as(&self.cost);
        }
    }
}
