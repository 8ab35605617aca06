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
use super::shard::{Core, Keys, Shard};
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
        if keys.plain && !keys.slots[*slot].is_moved() {
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
        decide(&keys.slots[self.place().slot], cost, now, &self.place().shard.core)
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
        keys.slots[self.place().slot].stats(now, &self.place().shard.core)
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

pub(super) fn decide(slot: &Slot, cost: &Cost, now: u64, core: &Core) -> Decision {
    let stats = slot.stats(now, core);
    let check = if core.is_closed() { Err(Denial::Closed) } else { slot.check(cost, now) };
    let reserved = slot.plan.clip_guesses(cost);
    let elsewhere = core.backend.as_ref().and_then(|_| stats.short(&slot.plan.rules, &reserved));
    match elsewhere.map_or(check, |short| check.and(Err(Denial::Short(short)))) {
        Ok(()) => {
            let code = match (slot.plan.known, slot.plan.rules.is_empty()) {
                (false, _) => Code::UnknownModel,
                (true, true) => Code::Unlimited,
                (true, false) => Code::Ok,
            };
            let key = slot.key.clone();
            Decision { code, key, dimension: None, wait: None, need: None, asked_at: now, stats }
        }
        Err(denial) => {
            let Refused { key, code, dimension, wait, need, asked_at } =
                slot.refused(denial, cost, now);
            Decision { code, key, dimension, wait: Some(wait), need, asked_at, stats }
        }
    }
}

/// A reservation under a lock that is already held, of a limiter that is open and has its buckets here.
#[inline(always)]
pub(super) fn try_acquire(
    there: (&Arc<Shard>, u32),
    keys: MutexGuard<'_, Keys>,
    now: u64,
    cost: &Cost,
) -> Result<Permit, Refused> {
    acquire_plainly(there, keys, now, cost).or_else(|keys| try_otherwise(there, keys, now, cost))
}

/// The way that nearly every reservation goes; gives the lock back where it isn't plain that it fits.
#[inline(always)]
pub(super) fn acquire_plainly<'k>(
    (shard, slot): (&Arc<Shard>, u32),
    mut keys: MutexGuard<'k, Keys>,
    now: u64,
    cost: &Cost,
) -> Result<Permit, MutexGuard<'k, Keys>> {
    if !keys.plain || !keys.slots[slot].reserve_plainly(cost, now) {
        return Err(keys);
    }
    Ok(grant((shard, slot), keys, now, cost))
}

#[inline(always)]
fn grant(
    (shard, slot): (&Arc<Shard>, u32),
    mut keys: MutexGuard<'_, Keys>,
    now: u64,
    cost: &Cost,
) -> Permit {
    keys.totals.granted += 1;
    let there = &mut keys.slots[slot];
    let (generation, version, open) = (there.generation(), there.plan.version, there.plan.holds);
    if open {
        there.pin();
    }
    drop(keys);
    let place = Place { shard: Arc::clone(shard), slot, generation };
    let granted = || Event::Granted { key: place.key(), cost: cost.clone(), metadata: None };
    shard.core.events.send(granted);
    Permit::new(Part::new(place, version), cost.clone(), now, open)
}

/// Where it isn't plain that it fits: it may still, and if not, here is why.
#[inline(never)]
fn try_otherwise(
    (shard, slot): (&Arc<Shard>, u32),
    mut keys: MutexGuard<'_, Keys>,
    now: u64,
    cost: &Cost,
) -> Result<Permit, Refused> {
    keys.slots[slot].recover(now, &shard.core);
    let cost = &*keys.slots[slot].plan.clip_guesses(cost);
    let result = match keys.slots[slot].enter(cost, now) {
        Ok(()) => Ok(grant((shard, slot), keys, now, cost)),
        Err(denial) => Err(denied(shard, keys, slot, denial, cost, now)),
    };
    shard.core.events.flush();
    result
}

#[cold]
fn denied(
    shard: &Shard,
    mut keys: MutexGuard<'_, Keys>,
    slot: u32,
    denial: Denial,
    cost: &Cost,
    now: u64,
) -> Refused {
    let refused = keys.slots[slot].refused(denial, cost, now);
    keys.totals.denied += 1;
    drop(keys);
    shard.core.denied.offer(&refused.key, refused.dimension.as_ref());
    shard.core.events.send(|| Event::Denied {
        key: refused.key.clone(),
        dimension: refused.dimension.clone(),
        metadata: None,
    });
    refused
}
