use std::fmt;
use std::sync::{Arc, Once};

use smallvec::SmallVec;

use super::entry::Entry;
use crate::backend::{Ending, Reservation};
use crate::event::Event;
use crate::key::limits::Granted;
use crate::plan::Plan;
use crate::provider::LimitReading;
use crate::quota::{Cost, Dimension, Key};
use crate::timestamp::Timestamp;

/// A granted reservation.
///
/// Dropping it keeps the charge, as reserved, and ends it: `let _permit = limiter.acquire(..)` is
/// rate limiting. Say [`settle`](Self::settle) when it is known what the request really took, and
/// [`release`](Self::release) if it never left.
pub struct Permit {
    first: Part,
    more: Option<Box<More>>,
    cost: Cost,
    granted_at: Timestamp,
    /// True if the limiter has something to do when it ends.
    open: bool,
    ended: bool,
}

/// The part of a permit under one key.
#[derive(Debug)]
pub(super) struct Part {
    entry: Arc<Entry>,
    /// The version of the plan that it was taken under.
    version: u32,
}

/// The same, and how much that is.
#[derive(Debug)]
pub(super) struct Taken {
    part: Part,
    /// Where a guess was clipped to what this key can hold; else what the permit says.
    pub(super) reserved: Option<Box<Cost>>,
}

/// The end of a permit.
#[derive(Debug, Clone, Copy)]
enum Charge<'a> {
    /// The request never left.
    Nothing,
    /// As much as was reserved.
    Reserved,
    /// As much as its owner says.
    Stated(&'a Cost),
}

/// Fields that few permits have.
#[derive(Debug, Default)]
struct More {
    /// What it took of its first key, where that is less than the permit says.
    reserved: Option<Box<Cost>>,
    parts: Parts,
    remote: Option<Arc<Reservation>>,
    /// Dimensions that are settled already, and the amounts charged.
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

/// The parts of a permit, key by key.
pub(super) type Parts = SmallVec<[Taken; 2]>;

impl Taken {
    pub(super) fn new(part: Part) -> Self {
        Self { part, reserved: None }
    }
}

impl Part {
    #[inline]
    pub(super) fn new(entry: Arc<Entry>, version: u32) -> Self {
        Self { entry, version }
    }

    /// Ends the reservation at this key. Returns whether limits count all of the charge.
    fn end(&self, (at, cost): (Timestamp, &Cost), charged: Option<&Cost>) -> bool {
        let mut locked = self.entry.lock();
        locked.end(Granted { version: self.version, at, cost }, charged);
        charged.is_none_or(|charged| locked.plan().counts(charged))
    }

    /// Settles one dimension before the reservation ends.
    fn settle_early(&self, dimension: &Dimension, reserved: &Cost, charged: &Cost) {
        let mut locked = self.entry.lock();
        let granted = Granted { version: self.version, at: locked.now(), cost: reserved };
        locked.settle_early(granted, dimension, charged);
    }

    /// Wakes the next waiter: the reservation has ended at a backend.
    fn ended_elsewhere(&self) {
        self.entry.lock().changed();
    }

    fn plan(&self) -> Arc<Plan> {
        Arc::clone(self.entry.lock().plan())
    }
}

impl Permit {
    #[inline]
    pub(super) fn new(first: Part, cost: Cost, granted_at: Timestamp, open: bool) -> Self {
        Self { first, more: None, cost, granted_at, open, ended: false }
    }

    pub(super) fn of_several(
        mut parts: Parts,
        remote: Option<Arc<Reservation>>,
        cost: Cost,
        (granted_at, open): (Timestamp, bool),
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

    /// When it was granted.
    pub fn granted_at(&self) -> Timestamp {
        self.granted_at
    }

    /// Returns the key that it was granted for; of several the first. Of keys that share a quota it is
    /// the name of that quota.
    pub fn key(&self) -> Key {
        self.first.entry.key.clone()
    }

    /// Whether its buckets are kept elsewhere.
    #[doc(hidden)]
    pub fn is_remote(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.remote.is_some())
    }

    /// Returns the entry of the key that was named first, and the version of its plan.
    pub(super) fn first(&self) -> (&Arc<Entry>, u32) {
        (&self.first.entry, self.first.version)
    }

    /// Returns whether the limiter has nothing to do when it ends, and it is of one key.
    pub(super) fn is_closed_and_single(&self) -> bool {
        !self.open && self.more.is_none()
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

    /// Takes what the headers of a response say is left over, while its permit is open. They speak
    /// of the limits of the key that was named first.
    ///
    /// What the provider has left lowers what we take to be left, as soon as it proves that somebody
    /// else uses the account: if it is less than there can ever have been, from the time at which
    /// this request was granted until now, with everything counted that was sent by then. What is
    /// missing is taken, less what may be in flight or rounded. So it makes no difference when the
    /// provider wrote the header
    /// down, how long the response took, and what was sent meanwhile.
    ///
    /// - Nothing is ever raised.
    /// - Half of the safety margin of a token bucket is allowed for requests that overtake each
    ///   other; what a reading may be off by ([`LimitReading::granularity`]); and, where what was
    ///   reserved only becomes a charge later, as much again as is in flight, which may take more
    ///   than was reserved.
    /// - A reading without a limit of the same dimension and window is ignored, and so is one with
    ///   more left than its limit. The first response of a key only starts the comparison.
    /// - A limit of the provider that is lower than the key's is logged once, as a warning, as long
    ///   as the key is kept ([`prune`](super::LimiterState::prune)). Of quotas
    ///   that were [learned](super::Feedback::learn) the limits follow the headers; quotas that were
    ///   set stay as they are.
    ///
    /// For a key whose readings are compared, what is left is noted whenever something is taken.
    pub fn observe(&self, readings: &[LimitReading]) {
        if self.is_remote() || readings.iter().all(|reading| reading.remaining.is_none()) {
            return;
        }
        let entry = &self.first.entry;
        let round = entry.core.dirty.round();
        let lower = entry.lock().observe(readings, self.granted_at, round);
        for limit in lower {
            tracing::warn!(
                key = entry.key.as_str(),
                dimension = limit.dimension.as_str(),
                ours = limit.ours,
                theirs = limit.theirs,
                "the provider's limit is below the quota's"
            );
        }
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

    /// Returns whether it took less of one of its keys than it says.
    #[inline]
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
            None => self.first.end((self.granted_at, &self.cost), charged),
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
            if let Some(backend) = &self.first.entry.core.backend {
                let ending = charged.cloned().map_or(Ending::Released, Ending::Settled);
                backend.end(reservation, ending);
            }
            self.parts().for_each(|(part, _)| part.ended_elsewhere());
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
            part.end((self.granted_at, &reserved), charged.as_ref())
        };
        self.parts().map(end).filter(|is_counted| !is_counted).count() == 0
    }

    /// Tells of a charge that doesn't match the limits, if it doesn't.
    #[cold]
    fn report(&self, stated: &Cost) {
        let plans = self.parts().map(|(part, own)| (part, own, part.plan()));
        let plans: SmallVec<[_; 2]> = plans.collect();
        let elsewhere = |custom: &str| plans.iter().any(|(.., plan)| plan.counts_custom(custom));
        for (part, reserved, plan) in &plans {
            let unsettled = plan.unsettled(reserved, stated);
            let unsettled = unsettled.filter(|dimension| !self.is_settled(dimension));
            let kept = unsettled.is_some();
            let Some(dimension) = unsettled.or_else(|| plan.uncounted(stated, elsewhere)) else {
                continue;
            };
            let key = part.entry.key.clone();
            WARN.call_once(|| {
                tracing::warn!(
                    key = key.as_str(),
                    dimension = dimension.as_str(),
                    kept,
                    "a request was settled in other dimensions than its key limits: what was \
                     reserved counts. Settle in the dimensions of the limits"
                );
            });
            let events = &part.entry.core.events;
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
        let events = &self.first.entry.core.events;
        if events.are_watched() {
            self.tell(charged);
        }
    }

    #[cold]
    fn tell(&self, charged: Option<&Cost>) {
        let charged = charged.cloned();
        for (part, reserved) in self.parts() {
            let (reserved, charged) = (reserved.clone(), charged.clone());
            let settled = Event::Settled { key: part.entry.key.clone(), reserved, charged };
            self.first.entry.core.events.send(|| settled);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.parts().map(|(part, _)| &part.entry.key).collect();
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
