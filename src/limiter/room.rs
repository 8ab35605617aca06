use super::shard::Core;
use super::sync::atomic::Ordering;

/// Room for keys.
impl Core {
    /// Takes room for one more key, if there is some. For whoever has the lock of the key's shard: so
    /// nobody takes room for a key that another is making.
    pub(super) fn take_room(&self) -> bool {
        let more = |keys| (keys < self.max_keys).then_some(keys + 1);
        self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Looks at a few slots of each shard, until there is a key to forget that is as good as new;
    /// says whether there is room by now. Never forgets what was used.
    pub(super) fn make_room(&self) -> bool {
        let Some(shards) = self.shards.get().and_then(std::sync::Weak::upgrade) else {
            return false;
        };
        let forgotten = shards.iter().any(|shard| {
            let (mut keys, now) = shard.lock();
            keys.sweep(self, now, LOOKED_AT) > 0
        });
        // Somebody else may have forgotten it first.
        forgotten || self.keys.load(Ordering::Relaxed) < self.max_keys
    }
}

/// Slots of each shard that are looked at for one new key: a flood of keys costs each of them a
/// bounded time.
const LOOKED_AT: usize = 8;
