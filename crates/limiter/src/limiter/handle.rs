use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use smallvec::smallvec;

use super::acquire::Acquire;
use super::admission::{self, Answer};
use super::entry::{Entry, Locked};
use super::gate::Gate;
use super::permit::Permit;
use super::scopes::{Entries, Scopes};
use super::table::KeyRef;
use crate::answer::decision::Decision;
use crate::answer::error::Refused;
use crate::answer::stats::KeyStats;
use crate::quota::{Cost, Key};
use crate::timestamp::Timestamp;

/// A handle to a key, with the methods of the limiter but without a lookup for each request.
///
/// The key isn't dropped while a handle to it exists. For a key that shares a quota with others, it is a
/// handle to the shared buckets.
#[derive(Clone)]
pub struct KeyHandle(Arc<Target>);

struct Target {
    key_ref: KeyRef,
    entry: Arc<Entry>,
}

impl KeyHandle {
    /// Creates a handle to a key, and an entry if the key has none.
    pub(super) fn new(mut key_ref: KeyRef) -> Result<Self, Refused> {
        let entry = key_ref.entry()?;
        // The key of a mode is kept: its requests count to the budget of its model.
        if entry.key != key_ref.key
            && entry.core.quotas.read().model_of_mode(&key_ref.key).is_none()
        {
            let (read_by, default_plan) = (key_ref.read_by, key_ref.default_plan.clone());
            let shared = key_ref.with_key(entry.key.clone());
            key_ref = KeyRef { read_by, default_plan, ..shared };
        }
        Ok(Self(Arc::new(Target { key_ref, entry })))
    }

    /// Reserves immediately, or returns the reason for the refusal. Doesn't overtake waiting requests.
    ///
    /// # Errors
    /// [`Refused`], with the time at which the request fits.
    #[inline]
    pub fn try_acquire(&self, cost: &Cost) -> Result<Permit, Refused> {
        match admission::try_one(Arc::clone(&self.0.entry), cost) {
            Answer::Granted(permit) => Ok(permit),
            Answer::Refused(refused) => Err(refused),
            Answer::Unknown => self.acquire(cost).try_now(),
        }
    }

    /// Waits until the cost fits and reserves it; see [`Limiter::acquire`](super::Limiter::acquire).
    ///
    /// # Errors
    /// The future returns an [`AcquireError`](super::AcquireError).
    ///
    /// # Cancel safety
    /// Dropping the future gives up its place in the queue and reserves nothing.
    ///
    /// # Panics
    /// The future panics if it has to wait for a time outside a tokio runtime with timers.
    #[must_use = "nothing is reserved until the future is awaited"]
    pub fn acquire(&self, cost: &Cost) -> Acquire {
        Acquire::new(smallvec![self.0.key_ref.clone()], cost.clone())
    }

    /// Checks whether a request would be admitted now, without reserving anything.
    pub fn decide(&self, cost: &Cost) -> Decision {
        let own = self.read(|key| Decision::of(key.key(), key, cost, &key.entry().core));
        match self.0.key_ref.shard.table() {
            Some(table) => table.with_spending_key(&self.0.key_ref.key, cost, own),
            None => own,
        }
    }

    /// Returns the refusal of a request that isn't admitted now, and the longest wait by the key's quota.
    pub(super) fn refusal(&self, cost: &Cost) -> Option<(Refused, Option<Duration>)> {
        let of = |key: &Locked<'_>, cost: &Cost| {
            let denial = key.check(cost, key.entry().core.is_local()).err()?;
            Some((key.refused(key.key(), denial, cost), key.plan().terms.longest_wait()))
        };
        let own = self.read(|key| of(key, cost));
        let model = self.spending_entry().filter(|entry| entry.core.is_local());
        let of_model = model.and_then(|entry| of(&entry.lock(), &cost.money()));
        match (own, of_model) {
            (Some((own, most)), Some((model, most_for_model))) => {
                let longer = if model.wait > own.wait { model } else { own };
                Some((longer, most.into_iter().chain(most_for_model).min()))
            }
            (own, model) => own.or(model),
        }
    }

    /// Returns the entry of the model to whose limits on spending the requests count as well.
    fn spending_entry(&self) -> Option<Arc<Entry>> {
        let limits_spending = self.0.entry.core.limits_spending();
        let model = limits_spending.then(|| self.0.key_ref.spending_key())??;
        model.entry().ok()
    }

    /// Returns whether the cost could fit by this time if all requests in flight came back without a charge.
    pub(super) fn may_fit_by(&self, cost: &Cost, by: Timestamp) -> bool {
        let entry = self.entry();
        let is_local = entry.core.is_local();
        let mut entries = Entries::of(entry);
        self.spending_entry().into_iter().for_each(|model| entries.push_spending_key(model));
        Scopes::lock(&entries).may_fit_by(cost, by, is_local)
    }

    /// Returns the current statistics of the key.
    pub fn stats(&self) -> KeyStats {
        self.read(|key| key.stats(key.key(), key.entry().core.backend.as_ref()))
    }

    /// Returns a gate that opens when a request would be admitted.
    pub fn gate(&self) -> Gate {
        Gate::new([(self.0.key_ref.clone(), self.entry())], None)
    }

    /// Returns the key.
    pub fn key(&self) -> Key {
        self.0.entry.key.clone()
    }

    pub(super) fn entry(&self) -> Arc<Entry> {
        Arc::clone(&self.0.entry)
    }

    /// Calls a function with the state of the key, or of the key that has replaced it.
    fn read<T>(&self, read: impl Fn(&Locked<'_>) -> T) -> T {
        let key = self.0.entry.lock();
        if !key.is_retired() {
            return read(&key);
        }
        drop(key);
        let entry = self.0.key_ref.entry().unwrap_or_else(|_| self.entry());
        let key = entry.lock();
        read(&key)
    }
}

impl fmt::Debug for KeyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyHandle").field(&self.key()).finish()
    }
}
