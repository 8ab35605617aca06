use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::attached::Attached;
use super::core::Core;
use super::entry::{Entry, Locked};
use super::key_budget::KeyBudget;
use super::scopes::{Entries, Scopes};
use super::table::{KeyRef, Shard, Table};
use crate::event::{Event, TARGET};
use crate::plan::{Pattern, Plan, ResolvedQuota};
use crate::quota::Quota;
use crate::stated::LimitReading;
use crate::sync::Mutex;

/// The state of a limiter, which lives as long as its clones. Permits, handles and futures keep only
/// their own keys alive.
pub(super) struct Shared {
    pub(super) core: Arc<Core>,
    pub(super) table: Arc<Table>,
    attached: Mutex<Vec<Arc<dyn Attached>>>,
}

impl Shared {
    pub(super) fn new(table: Arc<Table>) -> Self {
        Self { core: Arc::clone(table.core()), table, attached: Mutex::default() }
    }

    pub(super) fn attach(&self, attached: Arc<dyn Attached>) {
        self.attached.lock().push(attached);
    }

    pub(super) fn attached(&self) -> Vec<Arc<dyn Attached>> {
        self.attached.lock().clone()
    }

    pub(super) fn key_ref(&self, key: &str, budget: Option<&KeyBudget>) -> KeyRef {
        self.table.key_ref(key.into(), budget.cloned())
    }

    /// Changes a key, and creates its entry if it has none. Returns `None` if the key is refused.
    pub(super) fn with<T>(
        &self,
        key: &str,
        budget: Option<&KeyBudget>,
        mut change: impl FnMut(&mut Locked<'_>) -> T,
    ) -> Option<T> {
        let key_ref = self.key_ref(key, budget);
        loop {
            let entry = key_ref.entry().ok()?;
            let mut locked = entry.lock();
            if locked.is_retired() {
                drop(locked);
                key_ref.unlist(&entry);
                continue;
            }
            return Some(change(&mut locked));
        }
    }

    /// Calls a function for every key.
    pub(super) fn for_each(&self, mut change: impl FnMut(&mut Locked<'_>)) {
        self.table.for_each(|entry| change(&mut entry.lock()));
    }

    /// Updates the plans of the keys that a changed quota of this name covers.
    pub(super) fn replan(&self, name: &str, quota: &Quota) {
        // The first budget lets keys of modes count to their models, in buckets that they share too.
        let limits_spending = quota.limits().iter().any(|limit| limit.dimension().is_usd());
        if Pattern::is_one(name) || limits_spending {
            self.replan_all();
        } else {
            let quotas = self.core.quotas.read();
            let (of_modes, spaced) = (quotas.modes_of(name), quotas.in_name_space(name));
            drop(quotas);
            let mut successors = Successors::new(&self.core);
            let exact = std::iter::once(name).chain(spaced.as_deref()).map(|key| (key, true));
            for (key, is_exact) in exact.chain(of_modes.iter().map(|key| (&**key, false))) {
                let key_ref = self.key_ref(key, None);
                if let Some(entry) = key_ref.find() {
                    replan(&key_ref.shard, &entry, is_exact, &mut successors);
                }
            }
        }
        let event = || Event::QuotaChanged { key: name.into(), quota: quota.clone() };
        self.core.events.announce(event);
    }

    /// Updates the plans of all keys.
    pub(super) fn replan_all(&self) {
        let mut successors = Successors::new(&self.core);
        for shard in self.table.shards() {
            for entry in shard.entries() {
                replan(shard, &entry, false, &mut successors);
            }
        }
    }

    /// Resets the usage of one entry, or of all.
    pub(super) fn reset(&self, only: Option<&Arc<Entry>>) {
        let mut successors = Successors::new(&self.core);
        let mut reset = |entry: &Arc<Entry>| entry.lock().reset(|plan| successors.renewed(plan));
        match only {
            Some(entry) => reset(entry),
            None => {
                self.core.former_shares.clear();
                self.table.for_each(reset);
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let attached = self.attached();
        if !attached.is_empty() {
            let last = self.core.dirty.collect();
            attached.iter().for_each(|attached| attached.end(last.clone()));
        }
    }
}

impl fmt::Debug for Shared {
    /// Leaves the keys out: there may be a million, and they may be API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("clock", &self.core.clock).finish_non_exhaustive()
    }
}

/// Updates the plan of a key and wakes all waiters, since some may be admitted now, and the quota of
/// others may be gone. A key that uses the buckets of a shared quota from now on is retired.
fn replan(shard: &Shard, entry: &Arc<Entry>, is_exact: bool, successors: &mut Successors<'_>) {
    let mut key = entry.lock();
    // A pattern doesn't replace limits that came with a request; a quota of exactly this key does.
    if key.plan().given.is_some() && !is_exact {
        return;
    }
    // Read under the lock of the key, so that the key follows the last of several changes.
    let quotas = shard.core.quotas.read();
    // Default limits stay until a quota covers the key.
    if key.plan().is_default() && quotas.name_of(&entry.key).is_none() {
        return;
    }
    let resolved = quotas.resolve(&entry.key, key.plan().provider_name());
    let was_shared = key.plan().terms.is_shared() && Pattern::is_one(&entry.key);
    let is_left = was_shared && !quotas.is_shared(&entry.key);
    drop(quotas);
    match resolved {
        _ if is_left => {
            let limits = key.retire();
            shard.core.former_shares.add(entry.key.clone(), limits, key.now());
            drop(key);
            shard.unlist(entry);
        }
        Some(resolved) if resolved.key != entry.key => {
            drop(key);
            move_to(shard, entry, resolved);
        }
        resolved => {
            key.wake_all();
            follow(&mut key, resolved, successors);
        }
    }
}

/// Retires a key that uses the buckets of a shared quota from now on, and adds its usage to them.
fn move_to(shard: &Shard, entry: &Arc<Entry>, resolved: ResolvedQuota) {
    let Some(table) = shard.table() else { return };
    let read_by = resolved.plan.provider_name();
    let shared = KeyRef { read_by, ..table.key_ref(resolved.key, None) };
    while !entry.lock().is_retired() {
        let mut entries = Entries::of(Arc::clone(entry));
        let Ok(target) = shared.entry() else {
            // The shared quota is gone again, or admits nothing.
            entry.lock().retire();
            break;
        };
        entries.push(Arc::clone(&target));
        let mut keys = Scopes::lock(&entries);
        if keys.len() > 1 && !keys.is_retired() {
            let limits = keys.get_mut(0).retire();
            keys.get_mut(1).merge(&limits);
            break;
        }
        drop(keys);
        if target.lock().is_retired() {
            shared.unlist(&target);
        }
    }
    shard.unlist(entry);
}

/// Counts the learned limits of a key as token buckets, after headers have shown that they are buckets. The
/// buckets start with the amounts that remain by the last headers.
pub(super) fn count_as_buckets(entry: &Arc<Entry>, readings: &[LimitReading]) {
    let core = &entry.core;
    let Some(quota) = core.quotas.write().learn_refill(&entry.key, core.next_version()) else {
        return;
    };
    let mut key = entry.lock();
    let resolved = core.quotas.read().resolve(&entry.key, key.plan().provider_name());
    follow(&mut key, resolved, &mut Successors::new(core));
    key.restart_from(readings);
    drop(key);
    tracing::info!(target: TARGET, key = entry.key.as_str(), "limits refill all the time, by response headers");
    core.events.announce(|| Event::QuotaChanged { key: entry.key.clone(), quota });
}

/// Changes a key to its current plan. A key that is refused has none (`resolved` is `None`).
fn follow(key: &mut Locked<'_>, resolved: Option<ResolvedQuota>, successors: &mut Successors<'_>) {
    let is_unknown = resolved.is_none();
    let unknown = || Arc::new(Plan::unknown(&Quota::new(), None, 0, 0));
    let plan = resolved.map_or_else(unknown, |resolved| resolved.plan);
    let is_removed = key.plan().known && !plan.known;
    let removed_at = is_removed.then(|| successors.core.next_arrival());
    key.set_unknown(is_unknown, removed_at);
    let is_same = (plan.id, plan.has_spending_key) == (key.plan().id, key.plan().has_spending_key);
    if !is_same || key.plan().given.is_some() {
        let plan = successors.of(key.plan(), &plan);
        key.follow(plan);
    }
}

/// The new plans of keys whose plans change: one for all keys with the same old and new plan.
struct Successors<'a> {
    core: &'a Core,
    version: u32,
    /// By the address of the old plan, the id of the new one, and whether requests count to another budget.
    plans: HashMap<(*const Plan, u64, bool), Successor>,
}

/// The plan that succeeds another.
struct Successor {
    /// Kept alive so that no other plan gets its address.
    _old: Arc<Plan>,
    new: Arc<Plan>,
}

impl<'a> Successors<'a> {
    fn new(core: &'a Core) -> Self {
        Self { core, version: core.next_version(), plans: HashMap::new() }
    }

    /// Returns the successor of a plan that changes to `new`.
    fn of(&mut self, old: &Arc<Plan>, new: &Plan) -> Arc<Plan> {
        self.get(old, (new.id, new.has_spending_key), |version| new.succeed(old, version))
    }

    /// Returns the successor of a plan whose key was reset.
    fn renewed(&mut self, old: &Arc<Plan>) -> Arc<Plan> {
        self.get(old, (old.id, old.has_spending_key), |version| old.renewed(version))
    }

    fn get(
        &mut self,
        old: &Arc<Plan>,
        (id, has_spending_key): (u64, bool),
        new: impl FnOnce(u32) -> Plan,
    ) -> Arc<Plan> {
        // Another thread may have changed the key since the version was assigned: permits of that plan
        // must not pass for permits of the new one.
        if self.version <= old.version {
            self.version = self.core.next_version();
        }
        let version = self.version;
        let successor = self
            .plans
            .entry((Arc::as_ptr(old), id, has_spending_key))
            .or_insert_with(|| Successor { _old: Arc::clone(old), new: Arc::new(new(version)) });
        Arc::clone(&successor.new)
    }
}
