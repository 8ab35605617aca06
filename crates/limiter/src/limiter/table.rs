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
use crate::event::TARGET;
use crate::plan::{Plan, ResolvedQuota};
use crate::quota::{Cost, Key};
use crate::sync::{Mutex, SHARDS};
use crate::timestamp::Timestamp;

/// All keys of a limiter, in shards with a lock each.
///
/// The lock of a shard and the lock of a key are never held together: an entry is looked up and cloned
/// under the shard's lock, and locked after that is released. The quotas' lock may be taken under either,
/// the budgets' lock under a shard's, and the locks of the list of dirty keys and of deferred events under
/// a key's, and that of former shares under either. No lock is taken under these.
pub(super) struct Table([Arc<Shard>; SHARDS]);

/// A part of all keys, behind one lock.
pub(super) struct Shard {
    pub(super) core: Arc<Core>,
    table: Weak<Table>,
    entries: CacheAligned<Mutex<ShardEntries>>,
}

/// A value on its own cache lines, since the reference counts beside it change all the time.
#[repr(align(128))]
struct CacheAligned<T>(T);

#[derive(Default)]
struct ShardEntries {
    table: HashTable<Arc<Entry>>,
    /// The hash bucket at which the next sweep starts.
    cursor: usize,
}

/// A reference to a key, with which its entry can be found or created.
#[derive(Clone)]
pub(super) struct KeyRef {
    pub(super) shard: Arc<Shard>,
    pub(super) hash: u64,
    pub(super) key: Key,
    /// The name of the provider that has read the key as the model of a request.
    pub(super) read_by: Option<&'static str>,
    /// The plan of the key if no quota covers it, from the default limits of a request.
    pub(super) default_plan: Option<Arc<Plan>>,
    /// The budget that counts the key, unless a quota names it exactly.
    pub(super) budget: Option<KeyBudget>,
}

/// The result of an attempt to create an entry.
enum Creation {
    Entry(Arc<Entry>),
    /// The key now uses the buckets of a shared quota, or is refused.
    Moved,
    /// The table holds the largest number of keys allowed.
    Full,
}

impl Table {
    pub(super) fn new(core: &Arc<Core>) -> Arc<Self> {
        Arc::new_cyclic(|table| {
            let shard = |_| Shard {
                core: Arc::clone(core),
                table: Weak::clone(table),
                entries: CacheAligned(Mutex::default()),
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
        // These bits don't select the entries inside a shard's table.
        &self.0[(hash >> 32) as usize % SHARDS]
    }

    pub(super) fn key_ref(&self, key: Key, budget: Option<KeyBudget>) -> KeyRef {
        let hash = self.core().hash(&key);
        let shard = Arc::clone(self.shard(hash));
        KeyRef { shard, hash, key, read_by: None, default_plan: None, budget }
    }

    /// Returns the entry of a key, or the entry of the shared quota that covers the key.
    pub(super) fn find(&self, key: &str) -> Option<Arc<Entry>> {
        let resolved = || self.core().quotas.read().resolve(key, None).map(|resolved| resolved.key);
        self.key_ref(key.into(), None).find().or_else(|| self.key_ref(resolved()?, None).find())
    }

    /// Calls a function with the state of a key, without creating an entry: a key without an entry has
    /// the initial state of its quota. Returns `None` for a key that is unknown and refused.
    pub(super) fn peek<T>(&self, key: &str, read: impl Fn(&Key, &KeyState) -> T) -> Option<T> {
        let resolved = self.core().quotas.read().resolve(key, None)?;
        let find = |key: &str| {
            let entry = self.key_ref(key.into(), None).find()?;
            let state = entry.lock();
            (!state.is_retired()).then(|| read(&entry.key, &state))
        };
        let found =
            find(key).or_else(|| if resolved.key == key { None } else { find(&resolved.key) });
        Some(found.unwrap_or_else(|| read(&resolved.key, &self.new_state(key, resolved.plan))))
    }

    /// Returns the statistics of a key; empty ones if it is unknown and refused.
    pub(super) fn stats(&self, key: &str) -> KeyStats {
        let backend = self.core().backend.as_ref();
        let stats = |key: &Key, state: &KeyState| state.stats(key, backend);
        self.peek(key, stats).unwrap_or_default()
    }

    /// Decides about a cost without reserving it.
    pub(super) fn decide(&self, key: &str, cost: &Cost) -> Decision {
        let core = self.core();
        let decide = |key: &_, state: &_| Decision::of(key, state, cost, core);
        let own = self.peek(key, decide);
        let own = own.unwrap_or_else(|| Decision::unknown(key, core.clock.now()));
        self.with_spending_key(key, cost, own)
    }

    /// Returns the decision about a cost under the budget that the key counts to, if that is stricter than its own.
    pub(super) fn with_spending_key(&self, key: &str, cost: &Cost, own: Decision) -> Decision {
        let core = self.core();
        let budget =
            if core.limits_spending() { core.quotas.read().spending_key_of(key) } else { None };
        let of_budget = budget.map(|model| self.decide(&model, &cost.money()));
        match of_budget.filter(|of_budget| of_budget.wait > own.wait) {
            Some(of_budget) => Decision { stats: own.stats, ..of_budget },
            None => own,
        }
    }

    /// Decides about a cost under another plan, without changing the plan of the key.
    pub(super) fn decide_under(&self, key: &str, cost: &Cost, plan: &Arc<Plan>) -> Decision {
        let core = self.core();
        let own = match self.find(key) {
            Some(entry) => {
                let decide = |state: &KeyState| Decision::of(&entry.key, state, cost, core);
                entry.lock().with_plan(plan, decide)
            }
            None => Decision::of(&key.into(), &self.new_state(key, Arc::clone(plan)), cost, core),
        };
        self.with_spending_key(key, cost, own)
    }

    /// Returns the initial state of a key under a plan.
    pub(super) fn new_state(&self, key: &str, plan: Arc<Plan>) -> KeyState {
        let mut state = KeyState::new(plan);
        state.advance(self.core().clock.now(), || self.core().clock.now());
        self.core().pass_on_share(key, &mut state);
        state
    }

    /// Calls a function for every entry. The entries of a shard are listed first, so that no lock is held
    /// during the calls.
    pub(super) fn for_each(&self, mut act: impl FnMut(&Arc<Entry>)) {
        self.shards().for_each(|shard| shard.entries().iter().for_each(&mut act));
    }

    /// Drops idle keys in all shards. Returns their number.
    pub(super) fn prune(&self) -> usize {
        self.shards().map(|shard| shard.sweep(usize::MAX)).sum()
    }

    /// Drops idle keys among a few of each shard until one more key of this budget is allowed. Returns
    /// whether it is. Keys in use are never dropped.
    fn drop_idle_for(&self, budget: Option<&KeyBudget>) -> bool {
        self.shards().any(|shard| {
            shard.sweep(SWEPT_WHEN_FULL);
            self.core().allows_key(budget)
        })
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
        let entries = self.entries.0.lock();
        entries.table.find(hash, |entry| entry.key == *key).cloned()
    }

    /// Returns all entries.
    pub(super) fn entries(&self) -> Vec<Arc<Entry>> {
        self.entries.0.lock().table.iter().cloned().collect()
    }

    /// Returns all keys.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.entries.0.lock().table.iter().map(|entry| entry.key.clone()).collect()
    }

    /// Removes an entry from the table. Its other users keep it.
    pub(super) fn unlist(&self, entry: &Arc<Entry>) {
        let hash = self.core.hash(&entry.key);
        let mut entries = self.entries.0.lock();
        if let Ok(found) = entries.table.find_entry(hash, |other| Arc::ptr_eq(other, entry)) {
            let (removed, _) = found.remove();
            self.core.uncount_key(removed.budget);
            drop(entries);
            drop(removed);
        }
    }

    #[cold]
    fn create(&self, key_ref: &KeyRef) -> Creation {
        let (core, now) = (&self.core, self.core.clock.now());
        let (entry, is_known) = {
            let mut entries = self.entries.0.lock();
            // Another thread may have created it. The plan is read under the lock, so that a change of
            // the quotas either comes before, or finds this entry.
            if let Some(entry) = entries.table.find(key_ref.hash, |entry| entry.key == key_ref.key)
            {
                return Creation::Entry(Arc::clone(entry));
            }
            let resolved = key_ref.resolve();
            let Some(resolved) = resolved.filter(|resolved| resolved.key == key_ref.key) else {
                return Creation::Moved;
            };
            entries.sweep(core, now, SWEPT_PER_NEW_KEY);
            let plan = resolved.plan;
            let Some(budget) = core.count_key(plan.reserved, key_ref.budget.as_ref()) else {
                return Creation::Full;
            };
            let is_known = plan.known;
            let mut entry = Entry::new(core, key_ref.key.clone(), plan, budget);
            core.pass_on_share(&entry.key.clone(), entry.get_mut(now));
            let entry = Arc::new(entry);
            let hash = |entry: &Arc<Entry>| core.hash(&entry.key);
            entries.table.insert_unique(key_ref.hash, Arc::clone(&entry), hash);
            (entry, is_known)
        };
        // Logged without a lock, since a subscriber may use the limiter.
        if !is_known {
            tracing::warn!(target: TARGET, key = key_ref.key.as_str(), "no quota is known for this key");
        }
        Creation::Entry(entry)
    }

    /// Drops idle keys in the next `buckets` hash buckets. Returns their number.
    fn sweep(&self, buckets: usize) -> usize {
        let now = self.core.clock.now();
        self.entries.0.lock().sweep(&self.core, now, buckets)
    }
}

impl ShardEntries {
    /// Moves the cursor forward by `buckets` hash buckets. Returns the indexes of these.
    fn next_buckets(&mut self, buckets: usize) -> impl Iterator<Item = usize> + use<> {
        let (all, from) = (self.table.num_buckets().max(1), self.cursor);
        self.cursor = (from + buckets.min(all)) % all;
        (0..buckets.min(all)).map(move |step| (from + step) % all)
    }

    fn sweep(&mut self, core: &Core, now: Timestamp, buckets: usize) -> usize {
        let mut dropped = 0;
        for index in self.next_buckets(buckets) {
            let entry = self.table.get_bucket_mut(index);
            // An entry with another user isn't idle.
            let Some(entry) = entry.and_then(Arc::get_mut) else { continue };
            if entry.get_mut(now).is_idle()
                && let Ok(idle) = self.table.get_bucket_entry(index)
            {
                core.uncount_key(idle.remove().0.budget);
                dropped += 1;
            }
        }
        dropped
    }
}

impl KeyRef {
    /// Finds the entry of the key, if there is one.
    pub(super) fn find(&self) -> Option<Arc<Entry>> {
        self.shard.find(self.hash, &self.key)
    }

    /// Returns the entry of the key, and creates it if there is none. Keys that share a quota have the entry
    /// of that quota.
    pub(super) fn entry(&self) -> Result<Arc<Entry>, Refused> {
        self.find().map_or_else(|| self.create(), Ok)
    }

    /// Removes a retired entry of the key from the table, in case the thread that retired it hasn't done so
    /// yet. It may be the entry of a shared quota, in another shard.
    #[cold]
    pub(super) fn unlist(&self, entry: &Arc<Entry>) {
        self.with_key(entry.key.clone()).shard.unlist(entry);
    }

    /// Returns a reference to another key.
    pub(super) fn with_key(&self, key: Key) -> Self {
        let hash = self.shard.core.hash(&key);
        // If the limiter no longer exists, keys stay in their shard.
        let table = self.shard.table();
        let shard = table.as_ref().map_or(&self.shard, |table| table.shard(hash));
        let shard = Arc::clone(shard);
        Self { shard, hash, key, read_by: None, default_plan: None, budget: None }
    }

    /// Returns the key to whose limits on spending its requests count as well, if there is one: the model, if the key is
    /// that of a mode.
    pub(super) fn spending_key(&self) -> Option<Self> {
        let model = self.shard.core.quotas.read().spending_key_of(&self.key)?;
        let (read_by, budget) = (self.read_by, self.budget.clone());
        Some(Self { read_by, budget, ..self.with_key(model) })
    }

    /// Returns the buckets and the plan of the key.
    fn resolve(&self) -> Option<ResolvedQuota> {
        let quotas = self.shard.core.quotas.read();
        quotas.resolve_or(&self.key, self.read_by, self.default_plan.as_ref())
    }

    #[cold]
    fn create(&self) -> Result<Arc<Entry>, Refused> {
        loop {
            let Some(resolved) = self.resolve() else {
                return Err(self.refused(Code::UnknownModel, Wait::Never));
            };
            if resolved.key != self.key {
                let read_by = resolved.plan.provider_name();
                return Self { read_by, ..self.with_key(resolved.key) }.entry();
            }
            match self.shard.create(self) {
                Creation::Entry(entry) => return Ok(entry),
                Creation::Full if !self.drop_idle_keys() => {
                    return Err(self.refused(Code::TooManyKeys, Wait::Unknown));
                }
                Creation::Full | Creation::Moved => {}
            }
        }
    }

    fn drop_idle_keys(&self) -> bool {
        let table = self.shard.table();
        table.is_some_and(|table| table.drop_idle_for(self.budget.as_ref()))
    }

    fn refused(&self, code: Code, wait: Wait) -> Refused {
        Refused::new(&self.key, code, wait, self.shard.core.clock.now())
    }
}

/// The number of hash buckets that are swept for each new key, so that idle keys don't pile up.
const SWEPT_PER_NEW_KEY: usize = 4;

/// The number of hash buckets that are swept in each shard for a new key if the limiter is full. It
/// bounds the time that each key of a flood takes.
const SWEPT_WHEN_FULL: usize = 16;
