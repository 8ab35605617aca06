use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compact_str::CompactString;
use hashbrown::HashTable;
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::arena::Arena;
use super::backend::Backend;
use super::clock::{Clock, Sleep, SystemClock};
use super::event::Events;
use super::plan::Plan;
use super::quotas::Quotas;
use super::slot::Slot;
use crate::engine::Timeline;

/// What all keys share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) clock: Time,
    pub(super) quotas: RwLock<Quotas>,
    pub(super) hasher: foldhash::fast::RandomState,
    pub(super) events: Events,
    pub(super) max_waiting: usize,
    pub(super) closed: AtomicBool,
    pub(super) backend: Option<Arc<dyn Backend>>,
}

/// The clock, with the one that nearly everybody uses at hand.
#[derive(Debug, Clone)]
pub(super) enum Time {
    System(Arc<SystemClock>),
    Other(Arc<dyn Clock>),
}

impl Time {
    #[inline]
    pub(super) fn now(&self) -> u64 {
        match self {
            Self::System(clock) => clock.now(),
            Self::Other(clock) => clock.now(),
        }
    }

    pub(super) fn sleep_until(&self, time: u64) -> Sleep {
        match self {
            Self::System(clock) => clock.sleep_until(time),
            Self::Other(clock) => clock.sleep_until(time),
        }
    }
}

impl Core {
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// A part of all keys, behind a lock of its own.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) core: Arc<Core>,
    keys: Apart<Mutex<Keys>>,
}

/// On cache lines of its own: permits count their references beside it all the time.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

#[derive(Debug)]
pub(super) struct Keys {
    /// Numbers of slots by the hash of their key.
    index: HashTable<u32>,
    pub(super) slots: Arena<Slot>,
    time: Timeline,
    /// Whether the buckets are here and the limiter is open.
    pub(super) plain: bool,
}

/// Where a key is: good for as long as the limiter.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) shard: Arc<Shard>,
    pub(super) slot: u32,
}

impl Shard {
    pub(super) fn new(core: Arc<Core>) -> Self {
        let keys = Keys {
            index: HashTable::new(),
            slots: Arena::new(),
            time: Timeline::default(),
            plain: core.backend.is_none(),
        };
        Self { core, keys: Apart(Mutex::new(keys)) }
    }

    /// The keys, and the time to use while the lock is held.
    #[inline(always)]
    pub(super) fn lock(&self) -> (MutexGuard<'_, Keys>, u64) {
        let now = self.core.clock.now();
        let mut keys = self.keys.0.lock();
        let (now, back) = keys.time.advance(now);
        if back > 0 {
            keys.rebase(back);
        }
        (keys, now)
    }

    /// The keys, for a caller that needs no time.
    #[inline]
    pub(super) fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.0.lock()
    }

    /// The slot of a key, made if need be; `None` if the key is unknown and those are refused.
    #[inline]
    pub(super) fn slot(&self, hash: u64, key: &str) -> Option<u32> {
        let found = self.keys().find(hash, key);
        found.or_else(|| self.make(hash, key))
    }

    #[cold]
    pub(super) fn make(&self, hash: u64, key: &str) -> Option<u32> {
        let (slot, known) = {
            let mut keys = self.keys();
            // Somebody else may have made it, and the plan must be read under the lock: see `replan`.
            if let Some(slot) = keys.find(hash, key) {
                return Some(slot);
            }
            let plan: Arc<Plan> = self.core.quotas.read().plan(key)?;
            let known = plan.known;
            (keys.make(hash, key, plan, &self.core), known)
        };
        // Not under the lock: a subscriber may use the limiter.
        if !known {
            tracing::warn!(key, "no quota is known for this key");
        }
        Some(slot)
    }

    /// Gives every key the plan that it has by now, and wakes whoever may profit.
    pub(super) fn replan(&self) {
        let (mut keys, now) = self.lock();
        let quotas = self.core.quotas.read();
        let mut successors = HashMap::new();
        let mut wakers = Vec::new();
        for slot in keys.slots.iter_mut() {
            let Some(plan) = quotas.plan(&slot.key) else { continue };
            if Arc::ptr_eq(&plan, &slot.plan) || plan.version <= slot.plan.version {
                continue;
            }
            let pair = (Arc::as_ptr(&plan) as usize, Arc::as_ptr(&slot.plan) as usize);
            let next = successors.entry(pair).or_insert_with(|| {
                // The old plan is kept: its address must not be given to another.
                (Arc::clone(&slot.plan), Arc::new(plan.succeed(&slot.plan)))
            });
            slot.change_plan(Arc::clone(&next.1), now);
            wakers.extend(slot.changed());
        }
        drop(quotas);
        drop(keys);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }
}

impl Keys {
    #[cold]
    fn rebase(&mut self, back: u64) {
        self.slots.iter_mut().for_each(|slot| slot.rebase(back));
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, key: &str) -> Option<u32> {
        self.index.find(hash, |&slot| self.slots[slot].key == *key).copied()
    }

    /// A slot for a key that has none.
    fn make(&mut self, hash: u64, key: &str, plan: Arc<Plan>, core: &Core) -> u32 {
        let slot = self.slots.push(Slot::new(CompactString::new(key), plan));
        let slots = &self.slots;
        self.index.insert_unique(hash, slot, |&slot| hash_of(core, &slots[slot].key));
        slot
    }
}

/// The hash by which a key is found.
#[inline]
pub(super) fn hash_of(core: &Core, key: &str) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = core.hasher.build_hasher();
    hasher.write(key.as_bytes());
    hasher.finish()
}
