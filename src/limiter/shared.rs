use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::attached::Attached;
use super::core::Core;
use super::entry::{Entry, Locked};
use super::key_budget::KeyBudget;
use super::table::{Name, Shard, Table};
use crate::event::Event;
use crate::plan::{Pattern, Plan, ResolvedQuota};
use crate::quota::Quota;
use crate::sync::Mutex;

/// The state of a limiter, as long as a clone of it is there. Permits, handles and futures keep only
/// their own keys.
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

    pub(super) fn name(&self, key: &str, budget: Option<&KeyBudget>) -> Name {
        self.table.name(key.into(), budget.cloned())
    }

    /// Changes a key, which is made if it has no entry; `None` if it is refused.
    pub(super) fn with<T>(
        &self,
        key: &str,
        budget: Option<&KeyBudget>,
        mut change: impl FnMut(&mut Locked<'_>) -> T,
    ) -> Option<T> {
        let name = self.name(key, budget);
        loop {
            let entry = name.entry().ok()?;
            let mut locked = entry.lock();
            if locked.is_retired() {
                drop(locked);
                name.unlist(&entry);
                continue;
            }
            return Some(change(&mut locked));
        }
    }

    /// Calls a function for every key.
    pub(super) fn for_each(&self, mut change: impl FnMut(&mut Locked<'_>)) {
        self.table.for_each(|entry| change(&mut entry.lock()));
    }

    /// Gives the keys that a quota of this name concerns the plans that they have by now.
    pub(super) fn replan(&self, name: &str, quota: &Quota) {
        if Pattern::is_one(name) {
            self.replan_all();
        } else {
            let name = self.name(name, None);
            let mut successors = Successors::new(&self.core);
            if let Some(entry) = name.find() {
                replan(&name.shard, &entry, true, &mut successors);
            }
        }
        let event = || Event::QuotaChanged { key: name.into(), quota: quota.clone() };
        self.core.events.announce(event);
    }

    /// Gives all keys the plans that they have by now.
    pub(super) fn replan_all(&self) {
        let mut successors = Successors::new(&self.core);
        for shard in self.table.shards() {
            for entry in shard.entries() {
                replan(shard, &entry, false, &mut successors);
            }
        }
    }

    /// Forgets the amounts used of one entry, or of all.
    pub(super) fn reset(&self, only: Option<&Arc<Entry>>) {
        let mut successors = Successors::new(&self.core);
        let mut reset = |entry: &Arc<Entry>| entry.lock().reset(|plan| successors.renewed(plan));
        match only {
            Some(entry) => reset(entry),
            None => self.table.for_each(reset),
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
    /// Without the keys: there may be a million, and they may be API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("clock", &self.core.clock).finish_non_exhaustive()
    }
}

/// Gives a key the plan that it has by now, and wakes all waiters: some may be admitted, and some wait
/// for a quota that is gone. A key that counts elsewhere by now is retired.
fn replan(shard: &Shard, entry: &Arc<Entry>, by_own_name: bool, successors: &mut Successors<'_>) {
    let mut key = entry.lock();
    // A glob doesn't apply to keys whose limits came with a request; their own name does.
    if key.plan().given.is_some() && !by_own_name {
        return;
    }
    // Read under the lock of the key: the last of several changes is the last that it follows.
    let quotas = shard.core.quotas.read();
    // Limits for keys that no quota names stay until one does.
    if key.plan().is_default() && quotas.name_of(&entry.key).is_none() {
        return;
    }
    let resolved = quotas.resolve(&entry.key);
    drop(quotas);
    match resolved {
        Some(resolved) if resolved.key != entry.key => {
            key.retire();
            drop(key);
            shard.unlist(entry);
        }
        resolved => {
            key.wake_all();
            move_to(&mut key, resolved, successors);
        }
    }
}

/// Makes a key follow its plan from now on; there is none for a key that is refused.
fn move_to(key: &mut Locked<'_>, resolved: Option<ResolvedQuota>, successors: &mut Successors<'_>) {
    let is_unknown = resolved.is_none();
    let unknown = || Arc::new(Plan::unknown(&Quota::new(), (0, 0)));
    let plan = resolved.map_or_else(unknown, |resolved| resolved.plan);
    let is_removed = key.plan().known && !plan.known;
    let removed_at = is_removed.then(|| successors.core.arrival());
    key.set_unknown(is_unknown, removed_at);
    if plan.id != key.plan().id || key.plan().given.is_some() {
        let plan = successors.of(key.plan(), &plan);
        key.follow(plan);
    }
}

/// One successor for all keys that go from the same plan to the same plan.
struct Successors<'a> {
    core: &'a Core,
    version: u32,
    made: HashMap<(*const Plan, u32), Succession>,
}

/// The old plan is kept: its address must not be given to another.
struct Succession {
    _old: Arc<Plan>,
    new: Arc<Plan>,
}

impl<'a> Successors<'a> {
    fn new(core: &'a Core) -> Self {
        Self { core, version: core.version(), made: HashMap::new() }
    }

    fn of(&mut self, old: &Arc<Plan>, new: &Plan) -> Arc<Plan> {
        self.get(old, new.id, |version| new.succeed(old, version))
    }

    /// Returns the successor of a plan whose key was reset.
    fn renewed(&mut self, old: &Arc<Plan>) -> Arc<Plan> {
        self.get(old, old.id, |version| old.renewed(version))
    }

    fn get(&mut self, old: &Arc<Plan>, row: u32, new: impl FnOnce(u32) -> Plan) -> Arc<Plan> {
        // Another thread may have changed the key since the version was drawn: permits of that plan
        // would be taken for later ones.
        if self.version <= old.version {
            self.version = self.core.version();
        }
        let version = self.version;
        let succession = self
            .made
            .entry((Arc::as_ptr(old), row))
            .or_insert_with(|| Succession { _old: Arc::clone(old), new: Arc::new(new(version)) });
        Arc::clone(&succession.new)
    }
}
