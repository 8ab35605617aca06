use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use super::backend::Closing;
use super::changes::KeyChanges;
use super::limiter::Limiter;
use super::shard::{Core, Shard, Time};
use super::sync::{Mutex, SHARDS};

/// Somebody who goes with a limiter until its end: a store that is to hear what it did last.
pub trait Attached: Send + Sync + 'static {
    /// The limiter was closed. Its last changes may still be collected, and more may come as what is
    /// in flight ends.
    fn close(&self) -> Closing;

    /// Why what the limiter did is not saved, if it should be and could not the last time. Default:
    /// `None`.
    fn unsaved(&self) -> Option<String> {
        None
    }

    /// The last clone of the limiter is gone, whether it was closed or not, and this is what nobody
    /// has collected of it. May block for as long as it takes to write that down. Called once, by
    /// whoever dropped that clone.
    ///
    /// What is in flight by then is held in these changes. Its permits still end, but nobody hears of
    /// it: what they hold is best taken for what they took.
    fn end(&self, last: Vec<KeyChanges>);
}

/// All parts of all keys, for as long as a [`Limiter`] is there; and who is to hear of its end. What
/// goes on without it, a permit or a handle, keeps only its own part.
pub(super) struct Shards {
    all: Arc<All>,
    attached: Mutex<Vec<Arc<dyn Attached>>>,
}

pub(super) type All = [Arc<Shard>; SHARDS];

impl Limiter {
    pub(super) fn attach(&self, attached: Arc<dyn Attached>) {
        self.shards.attached.lock().push(attached);
    }

    /// A reference that doesn't keep the limiter alive.
    pub fn downgrade(&self) -> WeakLimiter {
        let (shards, all) = (Arc::downgrade(&self.shards), Arc::downgrade(&self.shards.all));
        WeakLimiter {
            clock: self.core.clock.clone(),
            core: Arc::downgrade(&self.core),
            shards,
            all,
        }
    }
}

/// A reference to a [`Limiter`] that keeps nothing of it alive but its clock: a listener, which the
/// limiter keeps, may have one.
#[derive(Clone)]
pub struct WeakLimiter {
    clock: Time,
    core: Weak<Core>,
    shards: Weak<Shards>,
    all: Weak<All>,
}

impl WeakLimiter {
    /// The limiter, if it is still there.
    pub fn upgrade(&self) -> Option<Limiter> {
        let (core, shards) = (self.core.upgrade()?, self.shards.upgrade()?);
        Some(Limiter { core, shards, budget: None })
    }

    /// The limiter, for a while, without putting off its end: for who is attached to it. What is done
    /// through it after that end nobody hears of.
    pub fn aside(&self) -> Option<Limiter> {
        let (core, all) = (self.core.upgrade()?, self.all.upgrade()?);
        let shards = Arc::new(Shards { all, attached: Mutex::default() });
        Some(Limiter { core, shards, budget: None })
    }

    /// The limiter's clock's time, in nanoseconds since the epoch, whether it is there or not.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }
}

impl fmt::Debug for WeakLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakLimiter").finish_non_exhaustive()
    }
}

impl Shards {
    pub(super) fn new(core: &Arc<Core>) -> Self {
        let all = std::array::from_fn(|_| Arc::new(Shard::new(Arc::clone(core))));
        Self { all: Arc::new(all), attached: Mutex::new(Vec::new()) }
    }

    /// A reference for the shards themselves, each of which keeps what they share alive.
    pub(super) fn to_all(&self) -> Weak<All> {
        Arc::downgrade(&self.all)
    }

    /// Who goes with the limiter.
    pub(super) fn attached(&self) -> Vec<Arc<dyn Attached>> {
        self.attached.lock().clone()
    }
}

impl Deref for Shards {
    type Target = All;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl fmt::Debug for Shards {
    /// Without the keys: there may be a million, and they may be API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards").finish_non_exhaustive()
    }
}

impl Drop for Shards {
    fn drop(&mut self) {
        let attached = self.attached();
        if !attached.is_empty() {
            let last = self.collect();
            attached.iter().for_each(|attached| attached.end(last.clone()));
        }
    }
}
