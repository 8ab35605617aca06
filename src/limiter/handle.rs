use std::fmt;
use std::sync::Arc;

use compact_str::CompactString;
use smallvec::smallvec;

use super::acquire::Acquire;
use super::decision::{Code, Decision};
use super::error::Refused;
use super::event::Event;
use super::gate::Gate;
use super::permit::{Part, Permit};
use super::place::{Pinned, Place};
use super::shard::{Keys, Shard};
use super::slot::{Denial, Slot};
use super::stats::KeyStats;
use super::sync::MutexGuard;
use crate::quota::Cost;

/// A key that has been looked up: the same calls as on the limiter, without the look-up.
///
/// Its key isn't forgotten while there is a handle. Of a glob whose keys share their buckets it is a
/// handle on what they share.
#[derive(Clone)]
pub struct KeyHandle(Arc<Pinned>);

impl KeyHandle {
    pub(super) fn new(pinned: Pinned) -> Self {
        Self(Arc::new(pinned))
    }

    pub(super) fn place(&self) -> &Place {
        &self.0.place
    }

    /// A reservation now, or the reason why not. Never passes those who wait.
    ///
    /// # Errors
    /// [`Refused`], with the time at which it would be granted.
    #[inline]
    pub fn try_acquire(&self, cost: &Cost) -> Result<Permit, Refused> {
        let Place { shard, slot, .. } = self.place();
        let (keys, now) = shard.lock();
        if keys.plain {
            return try_acquire((shard, *slot), keys, now, cost);
        }
        drop(keys);
        self.acquire(cost).try_now()
    }

    /// A reservation, in order of arrival; see [`Limiter::acquire`](super::Limiter::acquire).
    pub fn acquire(&self, cost: &Cost) -> Acquire {
        Acquire::new(smallvec![self.0.name.clone()], cost.clone())
    }

    /// What [`try_acquire`](Self::try_acquire) would answer; takes nothing.
    pub fn decide(&self, cost: &Cost) -> Decision {
        let (keys, now) = self.place().shard.lock();
        let closed = self.place().shard.core.is_closed();
        decide(&keys.slots[self.place().slot], cost, now, closed)
    }

    /// Why a request isn't let in now, if it isn't.
    pub(super) fn refusal(&self, cost: &Cost) -> Option<Refused> {
        let (keys, now) = self.place().shard.lock();
        let slot = &keys.slots[self.place().slot];
        slot.check(cost, now).err().map(|denial| slot.refused(denial, cost, now))
    }

    /// The key's figures now.
    pub fn stats(&self) -> KeyStats {
        let (keys, now) = self.place().shard.lock();
        keys.slots[self.place().slot].stats(now)
    }

    /// A gate that opens when a request would be let in.
    pub fn gate(&self) -> Gate {
        Gate::new([self.clone()])
    }

    /// The key.
    pub fn key(&self) -> CompactString {
        self.0.name.key.clone()
    }
}

impl fmt::Debug for KeyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyHandle").field(&self.key()).finish()
    }
}

pub(super) fn decide(slot: &Slot, cost: &Cost, now: u64, closed: bool) -> Decision {
    let (key, stats) = (slot.key.clone(), slot.stats(now));
    let check = if closed { Err(Denial::Closed) } else { slot.check(cost, now) };
    match check {
        Ok(()) => {
            let code = match (slot.plan.known, slot.plan.rules.is_empty()) {
                (false, _) => Code::UnknownModel,
                (true, true) => Code::Unlimited,
                (true, false) => Code::Ok,
            };
            Decision { code, key, dimension: None, wait: None, stats }
        }
        Err(denial) => {
            let refused = slot.refused(denial, cost, now);
            let (code, dimension) = (refused.code, refused.dimension);
            Decision { code, key, dimension, wait: Some(refused.wait), stats }
        }
    }
}

/// A reservation under a lock that is already held, of a limiter that is open and has its buckets here.
#[inline(always)]
pub(super) fn try_acquire(
    (shard, slot): (&Arc<Shard>, u32),
    mut keys: MutexGuard<'_, Keys>,
    now: u64,
    cost: &Cost,
) -> Result<Permit, Refused> {
    let there = &mut keys.slots[slot];
    if !there.reserve_plainly(cost, now)
        && let Err(denial) = there.enter(cost, now)
    {
        return Err(denied(shard, keys, slot, denial, cost, now));
    }
    let (generation, version, open) = (there.generation(), there.plan.version, there.plan.holds);
    drop(keys);
    let place = Place { shard: Arc::clone(shard), slot, generation };
    let granted = || Event::Granted { key: place.key(), cost: cost.clone(), metadata: None };
    shard.core.events.send(granted);
    Ok(Permit::new(Part::new(place, version), cost.clone(), now, open))
}

#[cold]
fn denied(
    shard: &Shard,
    keys: MutexGuard<'_, Keys>,
    slot: u32,
    denial: Denial,
    cost: &Cost,
    now: u64,
) -> Refused {
    let refused = keys.slots[slot].refused(denial, cost, now);
    drop(keys);
    shard.core.events.send(|| Event::Denied {
        key: refused.key.clone(),
        dimension: refused.dimension.clone(),
        metadata: None,
    });
    refused
}
