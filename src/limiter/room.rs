use super::shard::Core;
use super::sync::atomic::Ordering;

/// Room for one more key.
#[derive(Debug)]
pub(super) struct Room<'a>(&'a Core);

impl Room<'_> {
    /// The key is there.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.keys.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Core {
    /// Room for one more key, if need be where one is forgotten that is as good as new; `None` if
    /// there is no such key among those looked at. Never forgets what was used.
    pub(super) fn room(&self) -> Option<Room<'_>> {
        loop {
            let room = Room(self);
            if self.keys.fetch_add(1, Ordering::Relaxed) < self.max_keys {
                return Some(room);
            }
            drop(room);
            if !self.forget_one() {
                return None;
            }
        }
    }

    /// Looks at a few slots of each shard, until there is one to forget.
    fn forget_one(&self) -> bool {
        let Some(shards) = self.shards.get().and_then(std::sync::Weak::upgrade) else {
            return false;
        };
        shards.iter().any(|shard| {
            let (mut keys, now) = shard.lock();
            keys.sweep(self, now, LOOKED_AT) > 0
        })
    }
}

/// Slots of each shard that are looked at for one new key: a flood of keys costs each of them a
/// bounded time.
const LOOKED_AT: usize = 8;
