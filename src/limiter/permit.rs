use std::fmt;
use std::sync::{Arc, Once};
use std::task::Waker;

use compact_str::CompactString;
use smallvec::SmallVec;

use super::backend::{Ending, Reservation};
use super::event::Event;
use super::place::Place;
use super::plan::Plan;
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

/// The same, and how much that is.
#[derive(Debug)]
pub(super) struct Taken {
    part: Part,
    /// Where a guess was clipped to what this key can hold; else what the permit says.
    pub(super) reserved: Option<Box<Cost>>,
}

/// How a permit ends.
#[derive(Debug, Clone, Copy)]
enum Charge<'a> {
    /// The request never left.
    Nothing,
    /// As much as was reserved.
    Reserved,
    /// As much as its owner says.
    Stated(&'a Cost),
}

/// What few permits have.
#[derive(Debug, Default)]
struct More {
    /// What it took of its first key, where that is less than the permit says.
    reserved: Option<Box<Cost>>,
    parts: Parts,
    remote: Option<Arc<Reservation>>,
    /// What is settled already.
    early: SmallVec<[(Dimension, u64); 1]>,
}

impl More {
    /// What is still to be settled of what was reserved: nothing of what is settled already.
    fn left(&self, mut reserved: Cost) -> Cost {
        self.early.iter().for_each(|(dimension, _)| reserved.set(dimension, 0));
        reserved
    }

    /// What is still to be charged. Of what is settled already that is what a charge says beyond it.
    fn unpaid(&self, mut charged: Cost, charge: &Charge<'_>) -> Cost {
        for (dimension, settled) in &self.early {
            let unpaid = match charge {
                Charge::Stated(stated) if !stated.names(dimension) => 0,
                _ => charged.amount(dimension).saturating_sub(*settled),
            };
            charged.set(dimension, unpaid);
        }
        charged
    }
}

/// What a permit took, key by key.
pub(super) type Parts = SmallVec<[Taken; 2]>;

impl Taken {
    pub(super) fn new(part: Part) -> Self {
        Self { part, reserved: None }
    }
}

impl Part {
    pub(super) fn new(place: Place, version: u32) -> Self {
        Self { place, version }
    }

    /// A key that has been forgotten since was as good as new: there is nothing left to end. One with
    /// an `open` permit is pinned. Says whether limits count all of the charge, as far as it is known.
    #[inline]
    fn end(&self, (sent, reserved): (u64, &Cost), charged: Option<&Cost>, open: bool) -> bool {
        let (mut keys, now) = self.place.shard.lock();
        let slot = &mut keys.slots[self.place.slot];
        if slot.generation() != self.place.generation {
            return true;
        }
        slot.recover(now, &self.place.shard.core);
        slot.end((self.version, sent, reserved), charged, now);
        slot.note(now);
        if open {
            slot.unpin();
        }
        let is_counted = charged.is_none_or(|charged| slot.plan.counts(charged));
        let next = slot.changed();
        drop(keys);
        next.into_iter().for_each(Waker::wake);
        is_counted
    }

    /// Looks at the key's limits, if the key is still there.
    fn plan(&self) -> Option<Arc<Plan>> {
        let keys = self.place.shard.keys();
        let slot = &keys.slots[self.place.slot];
        (slot.generation() == self.place.generation).then(|| Arc::clone(&slot.plan))
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
        let Taken { part: first, reserved } = parts.remove(0);
        let alone = parts.is_empty() && remote.is_none();
        let (cost, reserved) = match (&remote, reserved) {
            (Some(remote), _) => (remote.cost.clone(), None),
            (None, Some(clipped)) if alone => (*clipped, None),
            (None, reserved) => (cost, reserved),
        };
        let more = (!alone).then(|| Box::new(More { reserved, parts, remote, ..More::default() }));
        Self { first, more, cost, granted_at, open, ended: false }
    }

    /// What was reserved, its guesses clipped to what the limits can hold. Of several keys each
    /// clips by its own limits; this is the cost as it was asked for.
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
    #[doc(hidden)]
    pub fn is_remote(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.remote.is_some())
    }

    /// What gives it back, where it is of one key and there is nothing to do when it ends.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        let Part { place: Place { slot, generation, .. }, version, .. } = self.first;
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
        if !self.open
            || *dimension == Dimension::Concurrency
            || self.is_remote()
            || self.is_settled(dimension)
        {
            return;
        }
        let mut cost = self.cost.clone();
        cost.set(dimension, charged);
        self.parts().for_each(|(part, reserved)| part.settle_early(dimension, reserved, &cost));
        self.more.get_or_insert_default().early.push((dimension.clone(), charged));
    }

    fn is_settled(&self, dimension: &Dimension) -> bool {
        let early = self.more.iter().flat_map(|more| &more.early);
        early.into_iter().any(|(early, _)| early == dimension)
    }

    /// The request has left and took `charged`. Anything above the reservation becomes debt.
    ///
    /// A dimension that `charged` doesn't name keeps what was reserved of it as its charge:
    /// `Cost::new().tokens(0)` took no tokens, `Cost::new()` as many as were reserved. A charge that
    /// doesn't match the key's limits is told by [`Event::ChargeMismatch`].
    #[inline]
    pub fn settle(mut self, charged: &Cost) {
        if self.open || *charged != self.cost || self.is_clipped() {
            self.end(Charge::Stated(charged));
        } else {
            self.announce(Some(charged));
        }
        self.ended = true;
    }

    /// The request never left: gives everything back.
    pub fn release(mut self) {
        self.end(Charge::Nothing);
        self.ended = true;
    }

    /// Whether it took less of one of its keys than it says.
    fn is_clipped(&self) -> bool {
        self.more.is_some() && self.parts().any(|(_, reserved)| *reserved != self.cost)
    }

    #[inline]
    fn end(&self, charge: Charge<'_>) {
        let stated = match charge {
            Charge::Stated(stated) => Some(stated),
            Charge::Nothing | Charge::Reserved => None,
        };
        let completed = stated.and_then(|stated| stated.completed(&self.cost));
        let charged = match charge {
            Charge::Nothing => None,
            Charge::Reserved => Some(&self.cost),
            Charge::Stated(stated) => Some(completed.as_ref().unwrap_or(stated)),
        };
        let is_counted = match &self.more {
            None => self.first.end((self.granted_at, &self.cost), charged, self.open),
            Some(more) => self.end_more(more, charge, charged),
        };
        self.announce(charged);
        if let Some(stated) = stated
            && (completed.is_some() || !is_counted)
        {
            self.report(stated);
        }
    }

    /// Ends all its parts: each charges what the request took, or what it reserved itself.
    #[cold]
    fn end_more(&self, more: &More, charge: Charge<'_>, charged: Option<&Cost>) -> bool {
        if let Some(reservation) = &more.remote {
            if let Some(backend) = &self.first.place.shard.core.backend {
                let ending = charged.cloned().map_or(Ending::Released, Ending::Settled);
                backend.end(reservation, ending);
            }
            self.parts().for_each(|(part, _)| part.ended());
            return false;
        }
        let end = |(part, own): (&Part, &Cost)| {
            let reserved = more.left(own.clone());
            let charged = match charge {
                Charge::Nothing => None,
                Charge::Reserved => Some(own.clone()),
                Charge::Stated(stated) => {
                    Some(stated.completed(own).unwrap_or_else(|| stated.clone()))
                }
            };
            let charged = charged.map(|charged| more.unpaid(charged, &charge));
            part.end((self.granted_at, &reserved), charged.as_ref(), self.open)
        };
        self.parts().map(end).filter(|is_counted| !is_counted).count() == 0
    }

    /// Tells of a charge that doesn't match the limits, if it doesn't.
    #[cold]
    fn report(&self, stated: &Cost) {
        let plans = self.parts().filter_map(|(part, own)| Some((part, own, part.plan()?)));
        let plans: SmallVec<[_; 2]> = plans.collect();
        let elsewhere = |custom: &str| plans.iter().any(|(.., plan)| plan.counts_custom(custom));
        for (part, reserved, plan) in &plans {
            let unsettled = plan.unsettled(reserved, stated);
            let unsettled = unsettled.filter(|dimension| !self.is_settled(dimension));
            let kept = unsettled.is_some();
            let Some(dimension) = unsettled.or_else(|| plan.uncounted(stated, elsewhere)) else {
                continue;
            };
            let key = part.place.key();
            WARN.call_once(|| {
                tracing::warn!(
                    key = key.as_str(),
                    dimension = dimension.as_str(),
                    kept,
                    "a request was settled in other dimensions than its key limits: what was \
                     reserved counts. Settle in the dimensions of the limits"
                );
            });
            let events = &part.place.shard.core.events;
            events.announce(|| Event::ChargeMismatch { key, dimension, kept });
        }
    }

    /// Its keys, and what it took of each.
    fn parts(&self) -> impl Iterator<Item = (&Part, &Cost)> {
        let first = self.more.as_ref().and_then(|more| more.reserved.as_deref());
        let more = self.more.iter().flat_map(|more| &more.parts);
        let more = more.map(|taken| (&taken.part, taken.reserved.as_deref()));
        let all = std::iter::once((&self.first, first)).chain(more);
        all.map(|(part, reserved)| (part, reserved.unwrap_or(&self.cost)))
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
        let charged = charged.cloned();
        for (part, reserved) in self.parts() {
            let (reserved, charged) = (reserved.clone(), charged.clone());
            let settled = Event::Settled { key: part.place.key(), reserved, charged };
            self.first.place.shard.core.events.send(|| settled);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.parts().map(|(part, _)| part.place.key()).collect();
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
        if self.ended {
            return;
        }
        if self.open {
            self.end(Charge::Reserved);
        } else {
            self.announce(Some(&self.cost));
        }
    }
}

/// Once a process: it is the same for every request of a program.
static WARN: Once = Once::new();
