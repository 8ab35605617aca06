use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::broadcast;

use super::acquire::Acquire;
use super::backend::Backend;
use super::builder::Builder;
use super::decision::{Code, Decision};
use super::error::{AcquireError, Refused};
use super::event::{Event, Events};
use super::handle::{KeyHandle, try_acquire};
use super::permit::Permit;
use super::quotas::Quotas;
use super::shard::{Core, Place, Shard, Time, hash_of};
use super::snapshot::{BucketSnapshot, KeySnapshot};
use super::stats::KeyStats;
use crate::engine::{self, Saved, Wait};
use crate::provider::{LimitReading, Profile};
use crate::quota::{Cost, Limit, Quota, Usage};

/// Keeps every key within its quota. Clones are the same limiter.
#[derive(Clone)]
pub struct Limiter {
    core: Arc<Core>,
    shards: Arc<[Arc<Shard>]>,
}

/// A refusal by the provider, as far as it says when to come back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimited {
    /// How long the provider asks to wait; a second where it doesn't say.
    pub retry_after: Option<Duration>,
}

impl RateLimited {
    /// A refusal that asks to wait so long.
    pub fn new(retry_after: Option<Duration>) -> Self {
        Self { retry_after }
    }
}

impl Limiter {
    /// A builder with no quotas, the system's clock and the default margin.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(super) fn new(
        clock: Time,
        quotas: Quotas,
        max_waiting: usize,
        backend: Option<Arc<dyn Backend>>,
    ) -> Self {
        let core = Arc::new(Core {
            clock,
            quotas: RwLock::new(quotas),
            hasher: foldhash::fast::RandomState::default(),
            events: Events::new(),
            max_waiting,
            closed: AtomicBool::new(false),
            backend,
        });
        let shards = (0..SHARDS).map(|_| Arc::new(Shard::new(Arc::clone(&core)))).collect();
        Self { core, shards }
    }

    /// A reservation now, or the reason why not. Never passes those who wait.
    ///
    /// # Errors
    /// [`Refused`], with the time at which it would be granted.
    #[inline]
    pub fn try_acquire(&self, key: &str, cost: &Cost) -> Result<Permit, Refused> {
        let hash = hash_of(&self.core, key);
        let shard = self.shard(hash);
        let (keys, now) = shard.lock();
        if let Some(slot) = keys.find(hash, key) {
            return try_acquire(shard, keys, now, slot, cost);
        }
        drop(keys);
        let Some(slot) = shard.make(hash, key) else { return Err(self.unknown(key)) };
        let (keys, now) = shard.lock();
        try_acquire(shard, keys, now, slot, cost)
    }

    /// A reservation now, if it is plain that it fits and nobody waits; `None` says nothing.
    #[cfg(feature = "tower")]
    #[inline]
    pub(crate) fn acquire_plainly(&self, key: &str, cost: &Cost) -> Option<Permit> {
        let hash = hash_of(&self.core, key);
        let shard = self.shard(hash);
        let (keys, now) = shard.lock();
        let slot = keys.find(hash, key)?;
        super::handle::acquire_plainly(shard, keys, now, slot, cost).ok()
    }

    /// A reservation, in order of arrival: waits exactly until it fits.
    ///
    /// # Errors
    /// On awaiting, an [`AcquireError`].
    ///
    /// # Cancel safety
    /// Dropping the future gives up its place in the queue and takes nothing.
    pub fn acquire(&self, key: &str, cost: &Cost) -> Acquire {
        match self.place(key) {
            Some(place) => Acquire::new(place, cost.clone()),
            None => {
                let place = Place { shard: Arc::clone(&self.shards[0]), slot: 0 };
                Acquire::failed(place, AcquireError::Refused(self.unknown(key)))
            }
        }
    }

    /// What [`try_acquire`](Self::try_acquire) would answer, with the key's figures; takes nothing.
    pub fn decide(&self, key: &str, cost: &Cost) -> Decision {
        match self.key(key) {
            Some(handle) => handle.decide(cost),
            None => Decision {
                code: Code::UnknownModel,
                key: key.into(),
                dimension: None,
                wait: Some(Wait::Never),
                stats: KeyStats::default(),
            },
        }
    }

    /// A handle on a key, which saves looking it up; `None` if unknown keys are refused.
    pub fn key(&self, key: &str) -> Option<KeyHandle> {
        self.place(key).map(KeyHandle)
    }

    /// One request that went past the limiter, and its usage: charged, whether it fits or not.
    pub fn record(&self, key: &str, usage: &Usage) {
        let Some(place) = self.place(key) else { return };
        let cost =
            Cost::new().tokens(usage.total()).input_tokens(usage.input).output_tokens(usage.output);
        let (mut keys, now) = place.shard.lock();
        let slot = &mut keys.slots[place.slot];
        engine::charge(&slot.plan.rules, &mut slot.buckets, &cost, now);
    }

    /// A key's figures now; none for a key that was never used.
    pub fn stats(&self, key: &str) -> KeyStats {
        let hash = hash_of(&self.core, key);
        let (keys, now) = self.shard(hash).lock();
        keys.find(hash, key).map_or_else(KeyStats::default, |slot| keys.slots[slot].stats(now))
    }

    /// Sets the quota of a key or of a glob, in use at once: what was used stays used, what is held
    /// stays held, and who waits is looked at again.
    pub fn set_quota(&self, key: &str, quota: &Quota) {
        self.core.quotas.write().set(key, quota);
        self.replan(key, quota);
    }

    /// The provider refused a request of this key: nothing of it is sent until that has passed.
    pub fn on_rate_limited(&self, key: &str, refusal: &RateLimited) {
        let Some(place) = self.place(key) else { return };
        let wait = refusal.retry_after.unwrap_or(Duration::from_secs(1));
        let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let (mut keys, now) = place.shard.lock();
        let line = keys.slots[place.slot].line();
        line.cooling_until = line.cooling_until.max(now.saturating_add(wait));
        let until = line.cooling_until;
        drop(keys);
        self.core.events.send(|| Event::CoolingDown { key: key.into(), until });
    }

    /// Takes limits over from a response's headers, for a key that nobody has set a quota for; what
    /// the provider says is used of them counts as used. From a success without any, the key is
    /// unlimited from now on.
    pub fn learn(&self, key: &str, readings: &[LimitReading]) {
        let Some(place) = self.place(key) else { return };
        // Keys come out of requests: one that reads as a glob must not set limits for others.
        if key.contains(['*', '?']) || place.shard.keys().slots[place.slot].plan.known {
            return;
        }
        let limits = readings.iter().filter_map(|reading| {
            Limit::new(reading.dimension.clone(), reading.limit?, reading.window)
        });
        let quota = limits.fold(Quota::new(), Quota::limit);
        // Of several responses at once only the first is taken.
        if !self.core.quotas.write().learn(key, &quota) {
            return;
        }
        self.replan(key, &quota);
        if quota.is_unlimited() {
            tracing::warn!(key, "responses tell no limits; the key is not limited");
        } else {
            tracing::info!(key, ?quota, "limits learned from response headers");
        }
        let now = self.now();
        let used = readings.iter().filter_map(|reading| {
            let used = reading.limit?.saturating_sub(reading.remaining?);
            let saved = Saved { taken: vec![(now, used)], held: 0 };
            Some(BucketSnapshot::new(reading.dimension.clone(), reading.window, saved))
        });
        self.absorb(&[KeySnapshot::new(key, used.collect())]);
    }

    /// The quota of a key, as it stands.
    pub fn quota(&self, key: &str) -> Quota {
        let Some(place) = self.place(key) else { return Quota::new() };
        let keys = place.shard.keys();
        let rules = keys.slots[place.slot].plan.rules.iter();
        rules.fold(Quota::new(), |quota, rule| quota.limit(rule.limit().clone()))
    }

    /// What happens from now on. A subscriber that is more than 4,096 events behind loses the
    /// oldest.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.core.events.subscribe()
    }

    /// The provider's profile that a key falls under, if one was loaded.
    pub fn profile(&self, key: &str) -> Option<Profile> {
        self.core.quotas.read().profile(key)
    }

    /// The clock's time, in nanoseconds since the epoch.
    pub fn now(&self) -> u64 {
        self.core.clock.now()
    }

    /// Refuses new work and rejects whoever waits; what is in flight ends as it would have.
    pub fn close(&self) {
        self.core.closed.store(true, Ordering::Release);
        for shard in self.shards.iter() {
            let mut keys = shard.lock().0;
            keys.plain = false;
            let wakers: Vec<Waker> = keys.slots.iter_mut().flat_map(|s| s.everyone()).collect();
            drop(keys);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// The state of every key that has any, sorted by key.
    pub fn snapshot(&self) -> Vec<KeySnapshot> {
        let mut all = Vec::new();
        for shard in self.shards.iter() {
            let (keys, now) = shard.lock();
            let of_shard = keys.slots.iter().map(|slot| slot.snapshot(now));
            all.extend(of_shard.filter(|key| !key.buckets.is_empty()));
        }
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    /// Takes the state of an earlier run, or of another limiter, on top of this one's.
    pub fn absorb(&self, snapshot: &[KeySnapshot]) {
        for key in snapshot {
            let Some(place) = self.place(&key.key) else { continue };
            let (mut keys, now) = place.shard.lock();
            keys.slots[place.slot].absorb(key, now);
        }
    }

    fn replan(&self, key: &str, quota: &Quota) {
        self.shards.iter().for_each(|shard| shard.replan());
        let event = || Event::QuotaChanged { key: key.into(), quota: quota.clone() };
        self.core.events.send(event);
    }

    #[inline]
    fn place(&self, key: &str) -> Option<Place> {
        let hash = hash_of(&self.core, key);
        let shard = self.shard(hash);
        let slot = shard.slot(hash, key)?;
        Some(Place { shard: Arc::clone(shard), slot })
    }

    #[inline]
    fn shard(&self, hash: u64) -> &Arc<Shard> {
        // Bits that the table inside the shard doesn't use to tell its entries apart.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    #[cold]
    fn unknown(&self, key: &str) -> Refused {
        let code = Code::UnknownModel;
        let (key, asked_at) = (key.into(), self.core.clock.now());
        Refused { key, code, dimension: None, wait: Wait::Never, need: None, asked_at }
    }
}

impl fmt::Debug for Limiter {
    /// Without its keys: there may be a million, and they may be API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("clock", &self.core.clock).finish_non_exhaustive()
    }
}

const SHARDS: usize = 64;
