use std::sync::{Arc, Weak};

use hashbrown::HashTable;

use super::core::Core;
use super::entry::Entry;
use super::key_budget::KeyBudget;
use super::key_state::KeyState;
use crate::answer::code::Code;
use crate::answer::decision::Decision;
use crate::answer::error::Refused;
use crate::answer::stats::KeyStats;
use crate::engine::Wait;
use crate::plan::Plan;
use crate::quota::{Cost, Key};
use crate::sync::{Mutex, SHARDS};
use crate::timestamp::Timestamp;

/// All keys of a limiter, in parts with a lock each.
///
/// The lock of a shard and the lock of a key are never held together: a key is looked up under the
/// shard's lock, cloned, and locked after that is released. Locks that may be taken
/// under them are the quotas', the budgets' (a shard's), and those of the list of dirty keys and of events
/// that are kept for later (a key's); nothing is locked under those.
pub(super) struct Table([Arc<Shard>; SHARDS]);

/// A part of all keys, behind a lock of its own.
pub(super) struct Shard {
    pub(super) core: Arc<Core>,
    table: Weak<Table>,
    keys: Apart<Mutex<Keys>>,
}

/// A value on cache lines of its own: the counts of references beside it change all the time.
#[repr(align(128))]
struct Apart<T>(T);

#[derive(Default)]
struct Keys {
    entries: HashTable<Arc<Entry>>,
    /// The bucket of the table at which the sweep goes on.
    cursor: usize,
}

/// A key by name, and how its entry is made if it has none.
#[derive(Clone)]
pub(super) struct Name {
    pub(super) shard: Arc<Shard>,
    pub(super) hash: u64,
    pub(super) key: Key,
    /// The limits of the key if no quota names it, where they came with a request.
    pub(super) default: Option<Arc<Plan>>,
    /// The budget that counts the key if no quota names it exactly.
    pub(super) budget: Option<KeyBudget>,
}

/// The result of the attempt to make an entry.
enum Made {
    Entry(Arc<Entry>),
    /// Its buckets are elsewhere by now, or it is refused.
    Moved,
    /// The table holds as many keys as it may.
    Full,
}

impl Table {
    pub(super) fn new(core: &Arc<Core>) -> Arc<Self> {
        Arc::new_cyclic(|table| {
            let shard = |_| Shard {
                core: Arc::clone(core),
                table: Weak::clone(table),
                keys: Apart(Mutex::default()),
            };
            Self(std::array::from_fn(|index| Arc::new(shard(index))))
        })
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.0[0].core
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = &Arc<Shard>> {
        self.0.iter()
    }

    /// Returns the shard of a hash.
    #[inline]
    pub(super) fn shard(&self, hash: u64) -> &Arc<Shard> {
        // Bits that the table inside the shard doesn't use to tell its entries apart.
        &self.0[(hash >> 32) as usize % SHARDS]
    }

    pub(super) fn name(&self, key: Key, budget: Option<KeyBudget>) -> Name {
        let hash = self.core().hash(&key);
        Name { shard: Arc::clone(self.shard(hash)), hash, key, default: None, budget }
    }

    /// Returns the entry of a key, or the entry of the shared quota that the key belongs to.
    pub(super) fn find(&self, key: &str) -> Option<Arc<Entry>> {
        let resolved = || self.core().quotas.read().resolve(key).map(|resolved| resolved.key);
        self.name(key.into(), None).find().or_else(|| self.name(resolved()?, None).find())
    }

    /// Calls a function with the state of a key, without creating an entry: a key without an entry has
    /// the initial state of its quota. Returns `None` for a key that is unknown and refused.
    pub(super) fn peek<T>(&self, key: &str, look: impl Fn(&Key, &KeyState) -> T) -> Option<T> {
        let resolved = self.core().quotas.read().resolve(key)?;
        let find = |key: &str| {
            let entry = self.name(key.into(), None).find()?;
            let state = entry.lock();
            (!state.is_retired()).then(|| look(&entry.key, &state))
        };
        let found =
            find(key).or_else(|| if resolved.key == key { None } else { find(&resolved.key) });
        Some(found.unwrap_or_else(|| look(&resolved.key, &self.new_state(resolved.plan))))
    }

    /// Returns the statistics of a key, or none if it is unknown and refused.
    pub(super) fn stats(&self, key: &str) -> KeyStats {
        let backend = self.core().backend.as_ref();
        let stats = |key: &Key, state: &KeyState| state.stats(key, backend);
        self.peek(key, stats).unwrap_or_default()
    }

    /// Decides about a cost without reserving it.
    pub(super) fn decide(&self, key: &str, cost: &Cost) -> Decision {
        let core = self.core();
        let decide = |key: &_, state: &_| Decision::of(key, state, cost, core);
        self.peek(key, decide).unwrap_or_else(|| Decision::unknown(key, core.clock.now()))
    }

    /// Decides about a cost under another plan, which the key doesn't keep.
    pub(super) fn decide_under(&self, key: &str, cost: &Cost, plan: &Arc<Plan>) -> Decision {
        let core = self.core();
        let Some(entry) = self.find(key) else {
            let state = self.new_state(Arc::clone(plan));
            return Decision::of(&key.into(), &state, cost, core);
        };
        let decide = |state: &KeyState| Decision::of(&entry.key, state, cost, core);
        entry.lock().under(plan, decide)
    }

    /// Returns the initial state of a key under a plan.
    pub(super) fn new_state(&self, plan: Arc<Plan>) -> KeyState {
        let mut state = KeyState::new(plan);
        state.advance(self.core().clock.now(), || self.core().clock.now());
        state
    }

    /// Calls a function for every entry. Entries are collected shard by shard; no lock is held
    /// meanwhile.
    pub(super) fn for_each(&self, mut act: impl FnMut(&Arc<Entry>)) {
        self.shards().for_each(|shard| shard.entries().iter().for_each(&mut act));
    }

    /// Forgets idle keys in all shards. Returns their number.
    pub(super) fn prune(&self) -> usize {
        self.shards().map(|shard| shard.sweep(usize::MAX)).sum()
    }

    /// Looks at a few keys of each shard for idle ones to forget, until there is room for a key of
    /// this budget. Returns whether there is. Usage is never forgotten.
    fn make_room(&self, budget: Option<&KeyBudget>) -> bool {
        let has_room = || self.core().has_room(budget);
        let sweep = |shard: &Arc<Shard>| {
            shard.sweep(SWEPT_FOR_ROOM);
            has_room()
        };
        self.shards().any(sweep)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.core().dirty.close();
    }
}

impl Shard {
    /// Returns the table, if its limiter still exists.
    pub(super) fn table(&self) -> Option<Arc<Table>> {
        self.table.upgrade()
    }

    /// Finds an entry.
    #[inline]
    pub(super) fn find(&self, hash: u64, key: &str) -> Option<Arc<Entry>> {
        let keys = self.keys.0.lock();
        keys.entries.find(hash, |entry| entry.key == *key).cloned()
    }

    /// Returns all entries.
    pub(super) fn entries(&self) -> Vec<Arc<Entry>> {
        self.keys.0.lock().entries.iter().cloned().collect()
    }

    /// Returns all keys.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.keys.0.lock().entries.iter().map(|entry| entry.key.clone()).collect()
    }

    /// Takes an entry out of the table: those that have it keep it.
    pub(super) fn unlist(&self, entry: &Arc<Entry>) {
        let hash = self.core.hash(&entry.key);
        let mut keys = self.keys.0.lock();
        if let Ok(found) = keys.entries.find_entry(hash, |other| Arc::ptr_eq(other, entry)) {
            let (removed, _) = found.remove();
            self.core.give_room_back(removed.budget);
            drop(keys);
            drop(removed);
        }
    }

    #[cold]
    fn make(&self, name: &Name) -> Made {
        let (core, now) = (&self.core, self.core.clock.now());
        let (entry, known) = {
            let mut keys = self.keys.0.lock();
            // Another thread may have made it. The plan is read under the lock: a change of the quotas
            // either comes before, or finds this entry.
            if let Some(entry) = keys.entries.find(name.hash, |entry| entry.key == name.key) {
                return Made::Entry(Arc::clone(entry));
            }
            let resolved = core.quotas.read().resolve_or(&name.key, name.default.as_ref());
            let Some(resolved) = resolved.filter(|resolved| resolved.key == name.key) else {
                return Made::Moved;
            };
            keys.sweep(core, now, SWEPT_PER_NEW_KEY);
            let Some(budget) = core.take_room(resolved.plan.reserved, name.budget.as_ref()) else {
                return Made::Full;
            };
            let known = resolved.plan.known;
            let entry = Arc::new(Entry::new(core, name.key.clone(), resolved.plan, budget));
            let hash = |entry: &Arc<Entry>| core.hash(&entry.key);
            keys.entries.insert_unique(name.hash, Arc::clone(&entry), hash);
            (entry, known)
        };
        // Without a lock: a subscriber may use the limiter.
        if !known {
            tracing::warn!(key = name.key.as_str(), "no quota is known for this key");
        }
        Made::Entry(entry)
    }

    /// Forgets idle keys among so many buckets of the table. Returns their number.
    fn sweep(&self, buckets: usize) -> usize {
        let now = self.core.clock.now();
        self.keys.0.lock().sweep(&self.core, now, buckets)
    }
}

impl Keys {
    /// Moves the cursor on by so many buckets of the table. Returns those that it has passed.
    fn next_buckets(&mut self, buckets: usize) -> impl Iterator<Item = usize> + use<> {
        let (all, from) = (self.entries.num_buckets().max(1), self.cursor);
        self.cursor = (from + buckets.min(all)) % all;
        (0..buckets.min(all)).map(move |step| (from + step) % all)
    }

    fn sweep(&mut self, core: &Core, now: Timestamp, buckets: usize) -> usize {
        let mut forgotten = 0;
        for index in self.next_buckets(buckets) {
            let entry = self.entries.get_bucket_mut(index);
            // An entry that has another user is not idle.
            let Some(entry) = entry.and_then(Arc::get_mut) else { continue };
            if entry.get_mut(now).is_idle()
                && let Ok(idle) = self.entries.get_bucket_entry(index)
            {
                core.give_room_back(idle.remove().0.budget);
                forgotten += 1;
            }
        }
        forgotten
    }
}

impl Name {
    /// Finds the entry of the key, if there is one.
    pub(super) fn find(&self) -> Option<Arc<Entry>> {
        self.shard.find(self.hash, &self.key)
    }

    /// Returns the entry of the key, made if there is none. Keys that share a quota have the entry of
    /// that quota.
    pub(super) fn entry(&self) -> Result<Arc<Entry>, Refused> {
        self.find().map_or_else(|| self.make(), Ok)
    }

    /// Takes a retired entry of the key out of the table, should the thread that retired it not have
    /// got there. It may be that of a quota that the key shares, in another shard.
    #[cold]
    pub(super) fn unlist(&self, entry: &Arc<Entry>) {
        self.renamed(entry.key.clone()).shard.unlist(entry);
    }

    /// The same key in its shard, under another name.
    pub(super) fn renamed(&self, key: Key) -> Self {
        let hash = self.shard.core.hash(&key);
        // Of a limiter that is gone, keys stay where they are.
        let table = self.shard.table();
        let shard = table.as_ref().map_or(&self.shard, |table| table.shard(hash));
        Self { shard: Arc::clone(shard), hash, key, default: None, budget: None }
    }

    #[cold]
    fn make(&self) -> Result<Arc<Entry>, Refused> {
        let core = &self.shard.core;
        loop {
            let Some(resolved) = core.quotas.read().resolve_or(&self.key, self.default.as_ref())
            else {
                return Err(self.refused(Code::UnknownModel, Wait::Never));
            };
            if resolved.key != self.key {
                return self.renamed(resolved.key).entry();
            }
            match self.shard.make(self) {
                Made::Entry(entry) => return Ok(entry),
                Made::Full if !self.make_room() => {
                    return Err(self.refused(Code::TooManyKeys, Wait::Unknown));
                }
                Made::Full | Made::Moved => {}
            }
        }
    }

    fn make_room(&self) -> bool {
        let table = self.shard.table();
        table.is_some_and(|table| table.make_room(self.budget.as_ref()))
    }

    fn refused(&self, code: Code, wait: Wait) -> Refused {
        Refused::new(&self.key, code, wait, self.shard.core.clock.now())
    }
}

/// Buckets of the table that are looked at whenever a key is new: idle keys never pile up.
const SWEPT_PER_NEW_KEY: usize = 4;

/// Buckets of each shard that are looked at for one new key where the limiter is full: a flood of keys
/// costs each of them a bounded time.
const SWEPT_FOR_ROOM: usize = 16;
