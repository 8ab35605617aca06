use std::fmt;
use std::sync::Arc;

use smallvec::smallvec;

use super::acquire::Acquire;
use super::admission::{self, Answer};
use super::entry::{Entry, Locked};
use super::gate::Gate;
use super::permit::Permit;
use super::table::Name;
use crate::answer::decision::Decision;
use crate::answer::error::Refused;
use crate::answer::stats::KeyStats;
use crate::quota::{Cost, Key};

/// A key that has been looked up: the same calls as on the limiter, without the look-up.
///
/// Its key isn't forgotten while there is a handle. Of a glob whose keys share their buckets it is a
/// handle on what they share.
#[derive(Clone)]
pub struct KeyHandle(Arc<Target>);

struct Target {
    name: Name,
    entry: Arc<Entry>,
}

impl KeyHandle {
    /// A handle on a key, made if there is none.
    pub(super) fn new(mut name: Name) -> Result<Self, Refused> {
        let entry = name.entry()?;
        if entry.key != name.key {
            name = Name { default: name.default.clone(), ..name.renamed(entry.key.clone()) };
        }
        Ok(Self(Arc::new(Target { name, entry })))
    }

    /// A reservation now, or the reason why not. Never passes requests that wait.
    ///
    /// # Errors
    /// [`Refused`], with the time at which it would be granted.
    #[inline]
    pub fn try_acquire(&self, cost: &Cost) -> Result<Permit, Refused> {
        match admission::try_one(Arc::clone(&self.0.entry), cost) {
            Answer::Granted(permit) => Ok(permit),
            Answer::Refused(refused) => Err(refused),
            Answer::Unknown => self.acquire(cost).try_now(),
        }
    }

    /// A reservation, in order of arrival; see [`Limiter::acquire`](super::Limiter::acquire).
    pub fn acquire(&self, cost: &Cost) -> Acquire {
        Acquire::new(smallvec![self.0.name.clone()], cost.clone())
    }

    /// Returns what [`try_acquire`](Self::try_acquire) would answer; takes nothing.
    pub fn decide(&self, cost: &Cost) -> Decision {
        self.look(|key| Decision::of(key.key(), key, cost, &key.entry().core))
    }

    /// Returns why a request isn't admitted now, if it isn't.
    pub(super) fn refusal(&self, cost: &Cost) -> Option<Refused> {
        self.look(|key| {
            let denial = key.check(cost).err()?;
            Some(key.refused(key.key(), denial, cost))
        })
    }

    /// The key's figures now.
    pub fn stats(&self) -> KeyStats {
        self.look(|key| key.stats(key.key(), key.entry().core.backend.as_ref()))
    }

    /// A gate that opens when a request would be admitted.
    pub fn gate(&self) -> Gate {
        Gate::new([self.entry()])
    }

    /// The key.
    pub fn key(&self) -> Key {
        self.0.name.key.clone()
    }

    pub(super) fn entry(&self) -> Arc<Entry> {
        Arc::clone(&self.0.entry)
    }

    /// Looks at the key, or at the one that has taken its place.
    fn look<T>(&self, look: impl Fn(&Locked<'_>) -> T) -> T {
        let key = self.0.entry.lock();
        if !key.is_retired() {
            return look(&key);
        }
        drop(key);
        let entry = self.0.name.entry().unwrap_or_else(|_| self.entry());
        let key = entry.lock();
        look(&key)
    }
}

impl fmt::Debug for KeyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyHandle").field(&self.key()).finish()
    }
}
