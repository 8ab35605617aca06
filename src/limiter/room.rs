use super::key_budget::{BudgetedKey, KeyBudget};
use super::plan::Plan;
use super::shard::Core;
use super::sync::atomic::Ordering;

/// Room for keys.
impl Core {
    /// Takes room for one more key of this plan, if there is some; a key that a quota names exactly
    /// always has room. For whoever has the lock of the key's shard: so nobody takes room for a key
    /// that another is making.
    pub(super) fn take_room(&self, plan: &Plan, budget: Option<&KeyBudget>) -> Option<KeyRoom> {
        if plan.reserved {
            self.keys.fetch_add(1, Ordering::Relaxed);
            return Some(None);
        }
        let room = match budget {
            Some(budget) => Some(budget.take()?),
            None => None,
        };
        let more = |keys| (keys < self.max_keys).then_some(keys + 1);
        self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(room)
    }

    /// Looks at a few slots of each shard for keys to forget that are as good as new, until there is
    /// room for a key that this budget counts; says whether there is. Never forgets what was used.
    pub(super) fn make_room(&self, budget: Option<&KeyBudget>) -> bool {
        let Some(shards) = self.shards.get().and_then(std::sync::Weak::upgrade) else {
            return false;
        };
        let has_room = || {
            let keys = self.keys.load(Ordering::Relaxed);
            keys < self.max_keys && !budget.is_some_and(KeyBudget::is_full)
        };
        shards.iter().any(|shard| {
            let (mut keys, now) = shard.lock();
            keys.sweep(self, now, LOOKED_AT);
            has_room()
        })
    }
}

/// The room that a key takes of the budget that counts it, if one does.
pub(super) type KeyRoom = Option<BudgetedKey>;

/// Slots of each shard that are looked at for one new key: a flood of keys costs each of them a
/// bounded time.
const LOOKED_AT: usize = 8;
