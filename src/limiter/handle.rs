use std::fmt;
use std::sync::Arc;

use compact_str::CompactString;
use parking_lot::MutexGuard;

use super::acquire::Acquire;
use super::decision::{Code, Decision};
use super::error::Refused;
use super::event::Event;
use super::gate::Gate;
use super::permit::Permit;
use super::shard::{Keys, Place, Shard};
use super::slot::Denial;
use super::stats::KeyStats;
use crate::quota::Cost;

/// A key that has been looked up: the same calls as on the limiter, without the look-up.
#[derive(Clone)]
pub struct KeyHandle(pub(super) Place);

impl KeyHandle {
    /// A reservation now, or the reason why not. Never passes those who wait.
    ///
    /// # Errors
    /// [`Refused`], with the time at which it would be granted.
    #[inline]
    pub fn try_acquire(&self, cost: &Cost) -> Result<Permit, Refused> {
        let (keys, now) = self.0.shard.lock();
        try_acquire(&self.0.shard, keys, now, self.0.slot, cost)
    }

    /// A reservation, in order of arrival; see [`Limiter::acquire`](super::Limiter::acquire).
    pub fn acquire(&self, cost: &Cost) -> Acquire {
        Acquire::new(self.0.clone(), cost.clone())
    }

    /// What [`try_acquire`](Self::try_acquire) would answer; takes nothing.
    pub fn decide(&self, cost: &Cost) -> Decision {
        self.0.decide(cost)
    }

    /// The key's figures now.
    pub fn stats(&self) -> KeyStats {
        let (keys, now) = self.0.shard.lock();
        keys.slots[self.0.slot].stats(now)
    }

    /// A gate that opens when a request would be let in.
    pub fn gate(&self) -> Gate {
        Gate::new(self.0.clone())
    }

    /// The key.
    pub fn key(&self) -> CompactString {
        self.0.key()
    }
}

impl fmt::Debug for KeyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyHandle").field(&self.key()).finish()
    }
}

impl Place {
    /// The key that is here.
    pub(super) fn key(&self) -> CompactString {
        self.shard.keys().slots[self.slot].key.clone()
    }

    fn decide(&self, cost: &Cost) -> Decision {
        let (keys, now) = self.shard.lock();
        let slot = &keys.slots[self.slot];
        let key = slot.key.clone();
        let stats = slot.stats(now);
        let check =
            if self.shard.core.is_closed() { Err(Denial::Closed) } else { slot.check(cost, now) };
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
}

/// A reservation under a lock that is already held.
#[inline(always)]
pub(super) fn try_acquire(
    shard: &Arc<Shard>,
    keys: MutexGuard<'_, Keys>,
    now: u64,
    slot: u32,
    cost: &Cost,
) -> Result<Permit, Refused> {
    acquire_plainly(shard, keys, now, slot, cost)
        .or_else(|keys| try_otherwise(shard, keys, now, slot, cost))
}

/// The way that nearly every reservation goes; gives the lock back where it isn't plain that it fits.
#[inline(always)]
pub(super) fn acquire_plainly<'k>(
    shard: &Arc<Shard>,
    mut keys: MutexGuard<'k, Keys>,
    now: u64,
    slot: u32,
    cost: &Cost,
) -> Result<Permit, MutexGuard<'k, Keys>> {
    if keys.plain && keys.slots[slot].reserve_plainly(cost, now) {
        return Ok(grant(shard, keys, now, slot, cost));
    }
    Err(keys)
}

#[inline(always)]
fn grant(
    shard: &Arc<Shard>,
    keys: MutexGuard<'_, Keys>,
    now: u64,
    slot: u32,
    cost: &Cost,
) -> Permit {
    let plan = &keys.slots[slot].plan;
    let (version, open) = (plan.version, plan.holds);
    drop(keys);
    let place = Place { shard: Arc::clone(shard), slot };
    shard.core.events.send(|| Event::Granted { key: place.key(), cost: cost.clone() });
    Permit::new(place, cost.clone(), now, version, open)
}

/// Where it isn't plain that it fits: it may still, and if not, here is why.
#[inline(never)]
fn try_otherwise(
    shard: &Arc<Shard>,
    mut keys: MutexGuard<'_, Keys>,
    now: u64,
    slot: u32,
    cost: &Cost,
) -> Result<Permit, Refused> {
    let there = &mut keys.slots[slot];
    if shard.core.is_closed() {
        return Err(denied(shard, keys, slot, Denial::Closed, cost, now));
    }
    if shard.core.backend.is_some() || there.waiting() > 0 {
        return elsewhere_or_behind(shard, keys, now, slot, cost);
    }
    match there.reserve(cost, now) {
        Ok(()) => Ok(grant(shard, keys, now, slot, cost)),
        Err(denial) => Err(denied(shard, keys, slot, denial, cost, now)),
    }
}

/// What happens where the buckets aren't here, or others are first.
#[cold]
fn elsewhere_or_behind(
    shard: &Arc<Shard>,
    mut keys: MutexGuard<'_, Keys>,
    now: u64,
    slot: u32,
    cost: &Cost,
) -> Result<Permit, Refused> {
    let there = &mut keys.slots[slot];
    let Some(backend) = shard.core.backend.as_ref().filter(|_| there.waiting() == 0) else {
        let denial = there.check(cost, now).err().unwrap_or(Denial::OthersWaiting);
        return Err(denied(shard, keys, slot, denial, cost, now));
    };
    if let Err(denial) = there.cooled(now) {
        return Err(denied(shard, keys, slot, denial, cost, now));
    }
    let reservation = there.reservation(cost);
    drop(keys);
    match backend.try_reserve(&reservation) {
        Ok(()) => {
            let place = Place { shard: Arc::clone(shard), slot };
            shard.core.events.send(|| Event::Granted { key: place.key(), cost: cost.clone() });
            Ok(Permit::remote(place, reservation, now))
        }
        Err(wait) => {
            let denial = Denial::Elsewhere(wait);
            Err(denied(shard, shard.keys(), slot, denial, cost, now))
        }
    }
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
    shard
        .core
        .events
        .send(|| Event::Denied { key: refused.key.clone(), dimension: refused.dimension.clone() });
    refused
}
