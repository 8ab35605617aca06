use std::fmt;
use std::sync::Arc;

use crate::key::changes::KeyChanges;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A key whose changes can be collected.
pub(super) trait Collect: Send + Sync {
    /// Returns the changes since the last collection, if there are any.
    fn collect(&self) -> Option<KeyChanges>;
}

/// The list of dirty keys: those with changes to collect.
#[derive(Default)]
pub(super) struct Dirty {
    is_tracked: AtomicBool,
    keys: Mutex<DirtyKeys>,
    /// The number of collections.
    rounds: AtomicU64,
}

#[derive(Default)]
struct DirtyKeys {
    listed: Vec<Arc<dyn Collect>>,
    /// `true` once the limiter no longer exists, so that nothing is collected any more.
    is_closed: bool,
}

impl Dirty {
    /// Returns whether changes are recorded.
    pub(super) fn is_tracked(&self) -> bool {
        self.is_tracked.load(Ordering::Acquire)
    }

    /// Records changes from now on. Returns whether they were recorded before.
    pub(super) fn track(&self) -> bool {
        self.is_tracked.swap(true, Ordering::AcqRel)
    }

    /// Returns the number of the current round of collection.
    pub(super) fn round(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Adds a key to the list.
    #[cold]
    pub(super) fn push(&self, key: Arc<dyn Collect>) {
        let mut keys = self.keys.lock();
        if !keys.is_closed {
            keys.listed.push(key);
        }
    }

    /// Collects the changes of all listed keys, sorted by key.
    pub(super) fn collect(&self) -> Vec<KeyChanges> {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        let listed = std::mem::take(&mut self.keys.lock().listed);
        let mut all: Vec<_> = listed.iter().filter_map(|key| key.collect()).collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    /// Clears the list for good, since listed keys and the list keep each other alive.
    pub(super) fn close(&self) {
        let mut keys = self.keys.lock();
        keys.is_closed = true;
        let listed = std::mem::take(&mut keys.listed);
        drop(keys);
        drop(listed);
    }
}

impl fmt::Debug for Dirty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dirty").finish_non_exhaustive()
    }
}
