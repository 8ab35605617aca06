use std::fmt;
use std::sync::Arc;

use compact_str::CompactString;
use smallvec::smallvec;

use super::acquire::Acquire;
use super::attached::Shards;
use super::backend::Backend;
use super::builder::{Builder, Settings};
use super::capacity::WaitForCapacity;
use super::clock::Boot;
use super::decision::{Code, Decision};
use super::error::{MissingLimit, Refused};
use super::gate::Gate;
#[cfg(feature = "tower")]
use super::handle::acquire_plainly;
use super::handle::{KeyHandle, decide, try_acquire};
use super::key_budget::KeyBudget;
use super::permit::Permit;
use super::place::{Name, shard_of};
use super::quotas::Quotas;
use super::shard::{Core, Time, hash_of};
use super::slot::Slot;
use super::stats::KeyStats;
use crate::engine::Wait;
use crate::provider::Profile;
use crate::quota::{Cost, Dimension, Quota};

/// Keeps every key within its quota. Clones are the same limiter.
#[derive(Clone)]
pub struct Limiter {
    pub(super) core: Arc<Core>,
    pub(super) shards: Arc<Shards>,
    /// What counts the keys that are added through this clone.
    pub(super) budget: Option<KeyBudget>,
}

impl Limiter {
    /// A builder with no quotas, the system's clock and the default margin.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(super) fn new(
        clock: Time,
        quotas: Quotas,
        settings: Settings,
        backend: Option<Arc<dyn Backend>>,
    ) -> Self {
        let core = Arc::new(Core::new(clock, quotas, settings, backend));
        let shards = Arc::new(Shards::new(&core));
        let _ = core.shards.set(shards.to_all());
        Self { core, shards, budget: None }
    }

    /// The same limiter for requests of one origin: the keys that they add count against this budget.
    #[must_use]
    pub fn with_key_budget(&self, budget: KeyBudget) -> Self {
        Self { budget: Some(budget), ..self.clone() }
    }

    /// A reservation now, or the reason why not. Never passes those who wait.
    ///
    /// # Errors
    /// [`Refused`], with the time at which it would be granted.
    #[inline]
    pub fn try_acquire(&self, key: &str, cost: &Cost) -> Result<Permit, Refused> {
        let hash = hash_of(&self.core, key);
        let shard = shard_of(&self.shards, hash);
        let (keys, now) = shard.lock();
        if let Some(slot) = keys.find(hash, key)
            && keys.plain
        {
            return try_acquire((shard, slot), keys, now, cost);
        }
        drop(keys);
        self.acquire(key, cost).try_now()
    }

    /// A reservation now, if it is plain that it fits and nobody waits; `None` says nothing.
    #[cfg(feature = "tower")]
    #[inline]
    pub(crate) fn acquire_plainly(&self, key: &str, cost: &Cost) -> Option<Permit> {
        let hash = hash_of(&self.core, key);
        let shard = shard_of(&self.shards, hash);
        let (keys, now) = shard.lock();
        let slot = keys.find(hash, key)?;
        acquire_plainly((shard, slot), keys, now, cost).ok()
    }

    /// A reservation, in order of arrival: waits exactly until it fits.
    ///
    /// # Errors
    /// On awaiting, an [`AcquireError`](super::AcquireError).
    ///
    /// # Cancel safety
    /// Dropping the future gives up its place in the queue and takes nothing.
    #[inline]
    pub fn acquire(&self, key: &str, cost: &Cost) -> Acquire {
        Acquire::new(smallvec![self.name(key.into())], cost.clone())
    }

    /// A reservation under several keys at once, such as a tenant, a model and an account: in all of
    /// them or in none. Waits as [`acquire`](Self::acquire) does.
    ///
    /// While one of the keys is short, a request waits in that one's queue alone and keeps nobody
    /// from the others; there its turn comes by the order of its arrival. Name the narrowest first: a
    /// tenant before its model, a model before the account. A key that is named twice counts once.
    ///
    /// # Panics
    /// If there are no keys.
    ///
    /// # Errors
    /// On awaiting, an [`AcquireError`](super::AcquireError): its key is the one that binds.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub fn acquire_all<K: AsRef<str>>(&self, keys: &[K], cost: &Cost) -> Acquire {
        assert!(!keys.is_empty(), "a request needs a key to be acquired under");
        let names = keys.iter().map(|key| self.name(key.as_ref().into()));
        Acquire::new(names.collect(), cost.clone())
    }

    /// A reservation under limits that are given with the call, whole and whatever the limiter's share
    /// is. They are those of the key until it is forgotten, or its own name gets another quota.
    /// What was used of limits of the same dimension and window stays used. Waits as
    /// [`acquire`](Self::acquire) does.
    ///
    /// # Errors
    /// [`MissingLimit`] for a cost in a dimension that has no limit (one request needs none). Where
    /// unknown keys are refused, so are those that only come with limits of their own.
    pub fn acquire_limits(
        &self,
        key: &str,
        cost: &Cost,
        limits: &Quota,
    ) -> Result<Acquire, MissingLimit> {
        limited(cost, limits)?;
        Ok(self.acquire(key, cost).given(limits.clone()))
    }

    /// What [`try_acquire`](Self::try_acquire) would answer, with the key's figures; takes nothing.
    /// Where a [`Backend`] keeps the buckets: as far as is known of them here.
    pub fn decide(&self, key: &str, cost: &Cost) -> Decision {
        let decision = self.peek(key, |slot, now| decide(slot, cost, now, &self.core));
        decision.unwrap_or_else(|| unknown(key, self.now()))
    }

    /// What a request would be answered under limits that are given with the call; takes nothing and
    /// leaves the key's limits as they are.
    ///
    /// # Errors
    /// As [`acquire_limits`](Self::acquire_limits).
    pub fn decide_limits(
        &self,
        key: &str,
        cost: &Cost,
        limits: &Quota,
    ) -> Result<Decision, MissingLimit> {
        limited(cost, limits)?;
        let core = &*self.core;
        let plan = Arc::new(self.core.quotas.read().given(key, limits, 0));
        let fresh = || decide(&Slot::new(key.into(), Arc::clone(&plan)), cost, self.now(), core);
        let there = self.find(key).and_then(|place| {
            let (mut keys, now) = place.shard.lock();
            let slot = &mut keys.slots[place.slot];
            let alive = slot.generation() == place.generation;
            alive.then(|| slot.under(Arc::clone(&plan), now, |slot| decide(slot, cost, now, core)))
        });
        Ok(there.unwrap_or_else(fresh))
    }

    /// Waits until a request of this cost would be let in, and takes nothing: somebody else may come
    /// first. Whoever wants to be sure acquires.
    ///
    /// # Errors
    /// On awaiting, an [`AcquireError`](super::AcquireError).
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub fn wait_for_capacity(&self, key: &str, cost: &Cost) -> WaitForCapacity {
        WaitForCapacity::new(self.key(key), cost.clone())
    }

    /// A handle on a key, which saves looking it up.
    ///
    /// # Errors
    /// [`Refused`] if the key is unknown and unknown keys are refused, or there are too many keys.
    pub fn key(&self, key: &str) -> Result<KeyHandle, Refused> {
        self.name(key.into()).pin().map(KeyHandle::new)
    }

    /// A gate that opens when a request would be let in under all of these keys.
    ///
    /// # Errors
    /// As [`key`](Self::key).
    pub fn gate<K: AsRef<str>>(&self, keys: &[K]) -> Result<Gate, Refused> {
        let handles = keys.iter().map(|key| self.key(key.as_ref()));
        Ok(Gate::new(handles.collect::<Result<Vec<_>, _>>()?))
    }

    /// A key's figures now; those of its quota for a key that was never used, and none for one that
    /// nobody knows.
    pub fn stats(&self, key: &str) -> KeyStats {
        self.peek(key, |slot, now| slot.stats(now, &self.core)).unwrap_or_default()
    }

    /// The figures of every key that has a quota of its own, and of every other that is kept (see
    /// [`prune`](Self::prune)), sorted by key. One moment for each key, not for all of them.
    pub fn iter(&self) -> std::vec::IntoIter<(CompactString, KeyStats)> {
        let stats = |key: CompactString| (key.clone(), self.stats(&key));
        self.keys().into_iter().map(stats).collect::<Vec<_>>().into_iter()
    }

    /// The keys that [`iter`](Self::iter) goes through.
    pub fn keys(&self) -> Vec<CompactString> {
        let mut keys: Vec<_> = self.core.quotas.read().named().cloned().collect();
        for shard in self.shards.iter() {
            keys.extend(shard.keys().iter().map(|slot| slot.key.clone()));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    pub(super) fn quota(&self, key: &str) -> Quota {
        let quota = |slot: &Slot, _| {
            let rules = slot.full().rules.iter();
            rules.fold(Quota::new(), |quota, rule| quota.limit(rule.limit().clone()))
        };
        self.peek(key, quota).unwrap_or_default()
    }

    pub(super) fn profile(&self, key: &str) -> Option<Profile> {
        self.core.quotas.read().profile(key)
    }

    /// The clock's time, in nanoseconds since the epoch.
    pub fn now(&self) -> u64 {
        self.core.clock.now()
    }

    pub(super) fn boot(&self) -> Option<Boot> {
        self.core.clock.boot()
    }

    /// Ends when [`now`](Self::now) has reached `time`, and not before.
    #[cfg(feature = "tower")]
    #[doc(hidden)]
    pub fn sleep_until(&self, time: u64) -> super::clock::Sleep {
        self.core.clock.sleep_until(time)
    }

    /// The same, and at once when the limiter is closed.
    #[cfg(feature = "tower")]
    pub(crate) fn sleep_unless_closed(&self, time: u64) -> super::clock::Sleep {
        use std::task::Poll;
        let core = Arc::clone(&self.core);
        let mut sleep = core.clock.sleep_until(time);
        Box::pin(async move {
            let mut closing = std::pin::pin!(core.closing.notified());
            if core.is_closed() {
                return;
            }
            std::future::poll_fn(|cx| match closing.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => sleep.as_mut().poll(cx),
            })
            .await;
        })
    }

    pub(super) fn name(&self, key: CompactString) -> Name {
        let hash = hash_of(&self.core, &key);
        let shard = Arc::clone(shard_of(&self.shards, hash));
        Name { shard, hash, key, default: None, budget: self.budget.clone() }
    }

    /// Looks at a key without making it: one that isn't there is as its quota has it. `None` for a
    /// key that is unknown and refused.
    pub(super) fn peek<T>(&self, key: &str, look: impl Fn(&Slot, u64) -> T) -> Option<T> {
        let home = self.core.quotas.read().home(key)?;
        let name = self.name(key.into());
        let places = [name.find(), self.name(home.key.clone()).find()];
        let there = places.into_iter().flatten().find_map(|place| {
            let (keys, now) = place.shard.lock();
            let slot = &keys.slots[place.slot];
            (slot.generation() == place.generation).then(|| look(slot, now))
        });
        Some(there.unwrap_or_else(|| look(&Slot::new(home.key, home.plan), self.now())))
    }
}

impl fmt::Debug for Limiter {
    /// Without its keys: there may be a million, and they may be API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("clock", &self.core.clock).finish_non_exhaustive()
    }
}

/// Whether there is a limit for each dimension that a cost names.
fn limited(cost: &Cost, limits: &Quota) -> Result<(), MissingLimit> {
    let named = [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens];
    let customs = cost.customs().map(|(name, _)| Dimension::custom(name));
    let costly = named.into_iter().chain(customs).filter(|named| cost.amount(named) > 0);
    let several = (cost.amount(&Dimension::Requests) > 1).then_some(Dimension::Requests);
    let is_limited = |named: &Dimension| limits.limits().iter().any(|l| l.dimension() == named);
    match costly.chain(several).find(|named| !is_limited(named)) {
        Some(dimension) => Err(MissingLimit { dimension }),
        None => Ok(()),
    }
}

fn unknown(key: &str, asked_at: u64) -> Decision {
    let (code, key, stats) = (Code::UnknownModel, key.into(), KeyStats::default());
    Decision { code, key, dimension: None, wait: Some(Wait::Never), need: None, asked_at, stats }
}
