use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use compact_str::CompactString;
use smallvec::SmallVec;

use super::backend::{Ending, Reservation};
use super::event::Event;
use super::place::Place;
use super::ticket::Ticket;
use crate::quota::{Cost, Dimension};

/// A granted reservation.
///
/// Dropping it keeps the charge, as reserved, and ends it: `let _permit = limiter.acquire(..)` is
/// rate limiting. Say [`settle`](Self::settle) when it is known what the request really took, and
/// [`release`](Self::release) if it never left.
pub struct Permit {
    first: Part,
    more: Option<Box<More>>,
    cost: Cost,
    granted_at: u64,
    /// Whether the limiter has something to do when it ends.
    open: bool,
    ended: bool,
}

/// What a permit took of one key.
#[derive(Debug)]
pub(super) struct Part {
    place: Place,
    version: u32,
}

/// What few permits have.
#[derive(Debug, Default)]
struct More {
    parts: Parts,
    remote: Option<Arc<Reservation>>,
    /// What is settled already.
    early: SmallVec<[(Dimension, u64); 1]>,
}

impl More {
    /// What is still to be settled of what was reserved, or of what it took.
    fn rest(&self, mut cost: Cost, of: impl Fn(u64, u64) -> u64) -> Cost {
        for (dimension, settled) in &self.early {
            cost.set(dimension, of(cost.amount(dimension), *settled));
        }
        cost
    }
}

/// What a permit took, key by key.
pub(super) type Parts = SmallVec<[Part; 2]>;

impl Part {
    pub(super) fn new(place: Place, version: u32) -> Self {
        Self { place, version }
    }

    /// A key that has been forgotten since was as good as new: there is nothing left to end. One with
    /// an `open` permit is pinned.
    #[inline]
    fn end(&self, (sent, reserved): (u64, &Cost), charged: Option<&Cost>, open: bool) {
        let (mut keys, now) = self.place.shard.lock();
        let slot = &mut keys.slots[self.place.slot];
        if slot.generation() != self.place.generation {
            return;
        }
        slot.recover(now, &self.place.shard.core);
        slot.end((self.version, sent, reserved), charged, now);
        slot.note(now);
        if open {
            slot.unpin();
        }
        let next = slot.changed();
        drop(keys);
        next.into_iter().for_each(Waker::wake);
    }

    /// What it took of one dimension is known before it ends.
    fn settle_early(&self, dimension: &Dimension, reserved: &Cost, charged: &Cost) {
        let (mut keys, now) = self.place.shard.lock();
        let slot = &mut keys.slots[self.place.slot];
        if slot.generation() != self.place.generation {
            return;
        }
        slot.settle_early(self.version, dimension, (reserved, charged), now);
        let next = slot.changed();
        drop(keys);
        next.into_iter().for_each(Waker::wake);
    }

    /// It ended elsewhere: somebody else may be let in by now.
    fn ended(&self) {
        let mut keys = self.place.shard.keys();
        let slot = &mut keys.slots[self.place.slot];
        slot.unpin();
        let next = slot.changed();
        drop(keys);
        next.into_iter().for_each(Waker::wake);
    }
}

impl Permit {
    #[inline]
    pub(super) fn new(first: Part, cost: Cost, granted_at: u64, open: bool) -> Self {
        Self { first, more: None, cost, granted_at, open, ended: false }
    }

    pub(super) fn of_several(
        mut parts: Parts,
        remote: Option<Arc<Reservation>>,
        cost: Cost,
        (granted_at, open): (u64, bool),
    ) -> Self {
        let first = parts.remove(0);
        let alone = parts.is_empty() && remote.is_none();
        let more = (!alone).then(|| Box::new(More { parts, remote, ..More::default() }));
        Self { first, more, cost, granted_at, open, ended: false }
    }

    /// What was reserved.
    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    /// When it was granted, in nanoseconds since the epoch.
    pub fn granted_at(&self) -> u64 {
        self.granted_at
    }

    /// The key that it was granted for; the first, where it was several. Empty if the limiter has
    /// forgotten it since: a key that is as good as new, of a permit that keeps nothing until it ends.
    pub fn key(&self) -> CompactString {
        self.first.place.key()
    }

    /// Whether its buckets are kept elsewhere.
    pub(crate) fn is_remote(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.remote.is_some())
    }

    /// What gives it back, where it is of one key and there is nothing to do when it ends.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        let Part { place: Place { slot, generation, .. }, version } = self.first;
        let ticket = Ticket { granted_at: self.granted_at, version, slot, generation };
        (!self.open && self.more.is_none()).then_some(ticket)
    }

    /// Where the key that was named first is.
    pub(super) fn place(&self) -> &Place {
        &self.first.place
    }

    /// What the request took of one dimension is final before it ends: the input of a response whose
    /// output is still on its way. What it reserved of that is free for others from now on. How it
    /// ends says nothing of this dimension any more, unless it took more than this.
    ///
    /// Nothing happens where nothing is held: the dimension was charged when it was sent, or by this
    /// before, or lies with a [`Backend`](super::Backend), which is told at the end.
    pub fn settle_early(&mut self, dimension: &Dimension, charged: u64) {
        let settled = |more: &More| more.early.iter().any(|(early, _)| early == dimension);
        let elsewhere = |more: &More| more.remote.is_some() || settled(more);
        if !self.open
            || *dimension == Dimension::Concurrency
            || self.more.as_deref().is_some_and(elsewhere)
        {
            return;
        }
        let mut cost = self.cost.clone();
        cost.set(dimension, charged);
        self.parts().for_each(|part| part.settle_early(dimension, &self.cost, &cost));
        self.more.get_or_insert_default().early.push((dimension.clone(), charged));
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

    #[inline]
    fn end(&self, charged: Option<&Cost>) {
        match &self.more {
            None => self.first.end((self.granted_at, &self.cost), charged, self.open),
            Some(more) => self.end_more(more, charged),
        }
        self.announce(charged);
    }

    #[cold]
    fn end_more(&self, more: &More, charged: Option<&Cost>) {
        let Some(reservation) = &more.remote else {
            let reserved = more.rest(self.cost.clone(), |_, _| 0);
            let charged = charged.map(|cost| more.rest(cost.clone(), u64::saturating_sub));
            let (sent, charged) = ((self.granted_at, &reserved), charged.as_ref());
            return self.parts().for_each(|part| part.end(sent, charged, self.open));
        };
        if let Some(backend) = &self.first.place.shard.core.backend {
            let ending = charged.cloned().map_or(Ending::Released, Ending::Settled);
            backend.end(reservation, ending);
        }
        self.parts().for_each(Part::ended);
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        let more = self.more.iter().flat_map(|more| &more.parts);
        std::iter::once(&self.first).chain(more)
    }

    #[inline]
    fn announce(&self, charged: Option<&Cost>) {
        let events = &self.first.place.shard.core.events;
        if events.are_watched() {
            self.tell(charged);
        }
    }

    #[cold]
    fn tell(&self, charged: Option<&Cost>) {
        let (reserved, charged) = (&self.cost, charged.cloned());
        for part in self.parts() {
            let (reserved, charged) = (reserved.clone(), charged.clone());
            let settled = Event::Settled { key: part.place.key(), reserved, charged };
            self.first.place.shard.core.events.send(|| settled);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.parts().map(|part| part.place.key()).collect();
        f.debug_struct("Permit")
            .field("keys", &keys)
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
