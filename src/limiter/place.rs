use std::sync::Arc;

use compact_str::CompactString;

use super::decision::Code;
use super::error::Refused;
use super::key_budget::KeyBudget;
use super::plan::Plan;
use super::shard::{Core, Making, Shard, hash_of};
use super::sync::SHARDS;
use crate::engine::Wait;

/// A key, and the part of all keys that it falls into.
#[derive(Debug, Clone)]
pub(super) struct Name {
    pub(super) shard: Arc<Shard>,
    pub(super) hash: u64,
    pub(super) key: CompactString,
    /// The limits that it has if no quota names it, where they came with a request.
    pub(super) default: Option<Arc<Plan>>,
    /// What counts the key if no quota names it exactly.
    pub(super) budget: Option<KeyBudget>,
}

/// Where a key's buckets are: good while the slot is of this generation.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) shard: Arc<Shard>,
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// A key that isn't forgotten as long as this lives, however idle it is.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) name: Name,
    pub(super) place: Place,
}

impl Name {
    /// Where the key is, if it is there.
    pub(super) fn find(&self) -> Option<Place> {
        let keys = self.shard.keys();
        let slot = keys.find(self.hash, &self.key)?;
        Some(self.at(slot, keys.slots[slot].generation()))
    }

    /// Where the key is, made if need be. Keys that share a quota are where the quota is.
    pub(super) fn place(&self) -> Result<Place, Refused> {
        self.find().map_or_else(|| self.make(), Ok)
    }

    /// The key, kept from being forgotten.
    pub(super) fn pin(&self) -> Result<Pinned, Refused> {
        loop {
            let place = self.place()?;
            let mut keys = place.shard.keys();
            let slot = &mut keys.slots[place.slot];
            if slot.generation() == place.generation {
                slot.pin();
                let key = slot.key.clone();
                drop(keys);
                let hash = hash_of(&self.shard.core, &key);
                let (shard, default) = (Arc::clone(&place.shard), self.default.clone());
                let name = Self { shard, hash, key, default, budget: self.budget.clone() };
                return Ok(Pinned { name, place });
            }
        }
    }

    #[cold]
    fn make(&self) -> Result<Place, Refused> {
        let core = &self.shard.core;
        loop {
            let Some(home) = core.quotas.read().home_or(&self.key, self.default.as_ref()) else {
                return Err(self.refused(Code::UnknownModel, Wait::Never));
            };
            if home.key != self.key {
                return core.name(&self.shard, home.key).place();
            }
            match self.shard.make(self) {
                Making::Made { slot, generation } => return Ok(self.at(slot, generation)),
                Making::Full if !core.make_room(self.budget.as_ref()) => {
                    return Err(self.refused(Code::TooManyKeys, Wait::Unknown));
                }
                Making::Full | Making::Moved => {}
            }
        }
    }

    fn at(&self, slot: u32, generation: u32) -> Place {
        Place { shard: Arc::clone(&self.shard), slot, generation }
    }

    fn refused(&self, code: Code, wait: Wait) -> Refused {
        let (key, asked_at) = (self.key.clone(), self.shard.core.clock.now());
        Refused { key, code, dimension: None, wait, need: None, asked_at }
    }
}

impl Core {
    /// A key by name. `near` is any shard: for a limiter that is gone all keys are where they are
    /// asked for.
    pub(super) fn name(&self, near: &Arc<Shard>, key: CompactString) -> Name {
        let hash = hash_of(self, &key);
        let shards = self.shards.get().and_then(std::sync::Weak::upgrade);
        let shard = shards.as_deref().map_or(near, |shards| shard_of(shards, hash));
        Name { shard: Arc::clone(shard), hash, key, default: None, budget: None }
    }
}

impl Place {
    /// The key that is here; empty if it is no more.
    pub(super) fn key(&self) -> CompactString {
        let keys = self.shard.keys();
        let slot = &keys.slots[self.slot];
        if slot.generation() == self.generation {
            slot.key.clone()
        } else {
            CompactString::default()
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.slot == other.slot && Arc::ptr_eq(&self.shard, &other.shard)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.place.shard.keys().slots[self.place.slot].unpin();
    }
}

/// The shard that a key falls into.
#[inline]
pub(super) fn shard_of(shards: &[Arc<Shard>; SHARDS], hash: u64) -> &Arc<Shard> {
    // Bits that the table inside the shard doesn't use to tell its entries apart.
    // A constant: dividing by a length costs half as much as all else.
    &shards[(hash >> 32) as usize % SHARDS]
}
