use std::fmt;
use std::sync::{Arc, Weak};

use compact_str::CompactString;
use smallvec::smallvec;
use tokio::sync::broadcast;

use super::acquire::Acquire;
use super::admission::{self, Answer};
use super::capacity::WaitForCapacity;
use super::core::{Core, Settings, Time};
use super::feedback::Feedback;
use super::gate::Gate;
use super::handle::KeyHandle;
use super::key_budget::KeyBudget;
use super::key_state::KeyState;
use super::permit::Permit;
use super::quotas_handle::Quotas;
use super::shared::Shared;
use super::state::State;
use super::table::{Name, Table};
use crate::answer::decision::Decision;
use crate::answer::error::{MissingLimit, Refused};
#[cfg(feature = "axum")]
use crate::answer::stats::Figures;
use crate::answer::stats::KeyStats;
use crate::backend::{Backend, Reservation, Reserved};
#[cfg(feature = "tower")]
use crate::clock::Sleep;
use crate::event::{Event, Listener};
use crate::plan::DefaultLimits;
use crate::plan::QuotaTable;
use crate::quota::{Cost, Dimension, Quota, Usage};
use crate::sync::atomic::Ordering;
use crate::timestamp::Timestamp;

/// Keeps every key within its quota. Clones are the same limiter.
#[derive(Clone)]
pub struct Limiter {
    shared: Arc<Shared>,
    /// The budget that counts the keys that are added through this clone.
    budget: Option<KeyBudget>,
}

impl Limiter {
    pub(super) fn new(
        clock: Time,
        quotas: QuotaTable,
        settings: Settings,
        backend: Option<Arc<dyn Backend>>,
    ) -> Self {
        let core = Arc::new(Core::new(clock, quotas, settings, backend));
        Self { shared: Arc::new(Shared::new(Table::new(&core))), budget: None }
    }

    /// The same limiter for requests of one origin: the keys that they add count against this budget.
    #[must_use]
    pub fn with_key_budget(&self, budget: KeyBudget) -> Self {
        Self { budget: Some(budget), ..self.clone() }
    }

    /// A handle to the quotas of the limiter: sets, removes and reads them.
    pub fn quotas(&self) -> Quotas<'_> {
        Quotas(&self.shared)
    }

    /// A handle for the answers of providers and messages of other programs.
    pub fn feedback(&self) -> Feedback<'_> {
        Feedback { shared: &self.shared, budget: self.budget.as_ref() }
    }

    /// A handle to the state of the limiter, for stores, metrics and status pages.
    pub fn state(&self) -> State<'_> {
        State { shared: &self.shared, budget: self.budget.as_ref() }
    }

    /// A reservation now, or the reason why not. Never passes those who wait.
    ///
    /// # Errors
    /// [`Refused`], with the time at which it would be granted.
    #[inline]
    pub fn try_acquire(&self, key: &str, cost: &Cost) -> Result<Permit, Refused> {
        let hash = self.shared.core.hash(key);
        if let Some(entry) = self.shared.table.shard(hash).find(hash, key) {
            match admission::try_one(entry, cost) {
                Answer::Granted(permit) => return Ok(permit),
                Answer::Refused(refused) => return Err(refused),
                Answer::Unknown => {}
            }
        }
        self.acquire(key, cost).try_now()
    }

    /// A reservation now, if it is plain that it fits and no request waits; `None` tells nothing.
    #[cfg(feature = "tower")]
    #[inline]
    pub(crate) fn try_fast(&self, key: &str, cost: &Cost) -> Option<Permit> {
        let hash = self.shared.core.hash(key);
        let entry = self.shared.table.shard(hash).find(hash, key)?;
        admission::try_fast(entry, cost, None)
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
        Acquire::new(smallvec![self.name(key)], cost.clone())
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
        let names = keys.iter().map(|key| self.name(key.as_ref()));
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

    /// Returns what [`try_acquire`](Self::try_acquire) would answer, with the key's figures; takes nothing.
    /// Where a [`Backend`] keeps the buckets: as far as is known of them here.
    pub fn decide(&self, key: &str, cost: &Cost) -> Decision {
        let core = &self.shared.core;
        let decide = |key: &_, state: &_| Decision::of(key, state, cost, core);
        let decision = self.shared.peek(key, decide);
        decision.unwrap_or_else(|| Decision::unknown(key, self.now()))
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
        let core = &self.shared.core;
        let plan = Arc::new(core.quotas.read().given(key, limits, 0));
        let there = self.shared.find(key).map(|entry| {
            let decide = |state: &KeyState| Decision::of(&entry.key, state, cost, core);
            entry.lock().under(&plan, decide)
        });
        Ok(there.unwrap_or_else(|| {
            let state = self.shared.new_state(Arc::clone(&plan));
            Decision::of(&key.into(), &state, cost, core)
        }))
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
        KeyHandle::new(self.name(key))
    }

    /// A gate that opens when a request would be let in under all of these keys.
    ///
    /// # Errors
    /// As [`key`](Self::key).
    pub fn gate<K: AsRef<str>>(&self, keys: &[K]) -> Result<Gate, Refused> {
        let entries = keys.iter().map(|key| self.name(key.as_ref()).entry());
        Ok(Gate::new(entries.collect::<Result<Vec<_>, _>>()?))
    }

    /// A key's figures now; those of its quota for a key that was never used, and none for one that
    /// nobody knows.
    pub fn stats(&self, key: &str) -> KeyStats {
        let backend = self.shared.core.backend.as_ref();
        let stats = |key: &CompactString, state: &KeyState| state.stats(key, backend);
        self.shared.peek(key, stats).unwrap_or_default()
    }

    /// Returns a key's figures now; those of its quota for a key that was never used.
    #[cfg(feature = "axum")]
    pub(crate) fn figures(&self, key: &str) -> Figures {
        let backend = self.shared.core.backend.as_ref();
        let figures = |key: &CompactString, state: &KeyState| state.figures(key, backend);
        self.shared.peek(key, figures).unwrap_or_default()
    }

    /// The figures of every key that has a quota of its own, and of every other that is kept (see
    /// [`prune`](Self::prune)), sorted by key. One moment for each key, not for all of them.
    pub fn iter(&self) -> std::vec::IntoIter<(CompactString, KeyStats)> {
        let stats = |key: CompactString| (key.clone(), self.stats(&key));
        self.keys().into_iter().map(stats).collect::<Vec<_>>().into_iter()
    }

    /// The keys that [`iter`](Self::iter) goes through.
    pub fn keys(&self) -> Vec<CompactString> {
        let mut keys: Vec<_> = self.shared.core.quotas.read().named().cloned().collect();
        keys.extend(self.shared.table.shards().flat_map(|shard| shard.keys()));
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The clock's time.
    pub fn now(&self) -> Timestamp {
        self.shared.core.clock.now()
    }

    /// Ends when [`now`](Self::now) has reached `time`, and not before.
    #[cfg(feature = "tower")]
    #[doc(hidden)]
    pub fn sleep_until(&self, time: Timestamp) -> Sleep {
        self.shared.core.clock.sleep_until(time)
    }

    /// The same, and at once when the limiter is closed.
    #[cfg(feature = "tower")]
    pub(crate) fn sleep_unless_closed(&self, time: Timestamp) -> Sleep {
        use std::task::Poll;
        let core = Arc::clone(&self.shared.core);
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

    /// Forgets what a key has used, and that its provider refused it; what is in flight stays held.
    pub fn reset(&self, key: &str) {
        let core = &self.shared.core;
        // Other processes may have used a key that has no entry here; they are told of the reset.
        let entry = match core.dirty.is_tracked() {
            true => self.name(key).entry().ok(),
            false => self.shared.find(key),
        };
        if let Some(entry) = &entry {
            self.shared.reset(Some(entry));
        }
        if let Some(backend) = &core.backend {
            let home = self.shared.peek(key, |key, _| key.clone());
            backend.reset(home.as_deref().unwrap_or(key));
        }
    }

    /// The same for all keys; of those that a [`Backend`](super::Backend) keeps, for all that are
    /// kept here too.
    pub fn reset_all(&self) {
        if let Some(backend) = &self.shared.core.backend {
            self.keys().iter().for_each(|key| backend.reset(key));
        }
        self.shared.reset(None);
    }

    /// Forgets all keys that are as good as new; says how many. The limiter does the same little by
    /// little as new keys come.
    pub fn prune(&self) -> usize {
        self.shared.table.prune()
    }

    /// One request that went past the limiter, and its usage: charged, whether it fits or not.
    pub fn record(&self, key: &str, usage: &Usage) {
        let cost =
            Cost::new().tokens(usage.total()).input_tokens(usage.input).output_tokens(usage.output);
        let budget = self.budget.as_ref();
        let Some(backend) = &self.shared.core.backend else {
            self.shared.with(key, budget, |key| key.charge(&cost));
            return;
        };
        if let Some(reserved) = self.shared.with(key, budget, |key| Reserved::of(key)) {
            backend.charge(&Arc::new(Reservation { scopes: [reserved].into(), cost }));
        }
    }

    /// Sets the number of requests that may wait for one key. Requests that wait already go on.
    pub fn set_max_waiting(&self, requests: usize) {
        self.shared.core.max_waiting.store(requests, Ordering::Relaxed);
    }

    /// Refuses new work and rejects waiting requests immediately; then lets a
    /// [`Backend`](super::Backend) and an [attached](super::State::attach) store finish. Requests in
    /// flight end as they would have.
    ///
    /// # Cancel safety
    /// Once polled, the limiter is closed.
    pub async fn close(&self) {
        let core = &self.shared.core;
        core.close();
        self.shared.for_each(|key| key.wake_all());
        if let Some(backend) = &core.backend {
            backend.close().await;
        }
        for attached in self.shared.attached() {
            attached.close().await;
        }
    }

    /// A reference that doesn't keep the limiter alive.
    pub fn downgrade(&self) -> WeakLimiter {
        let Shared { core, table, .. } = &*self.shared;
        let (shared, table) = (Arc::downgrade(&self.shared), Arc::downgrade(table));
        WeakLimiter { clock: core.clock.clone(), shared, table }
    }

    /// What happens from now on. A subscriber that is more than 4,096 events behind loses the
    /// oldest; a [listener](Self::listen) loses none.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.shared.core.events.subscribe()
    }

    /// Calls `listener` with every event from now on, for as long as there is the limiter: on the
    /// thread on which it happens and before that goes on, but under no lock. So it should be quick,
    /// and must not panic: a [`Permit`](super::Permit) that is dropped tells of it. It should hold no
    /// clone of the limiter, which would keep that for ever; a
    /// [`WeakLimiter`](super::WeakLimiter) does.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tollgate::{Cost, Limiter, Quota, limiter::Event};
    /// let limiter = Limiter::builder().quota("k", Quota::new().rpm(1)).build()?;
    /// let denied = Arc::new(AtomicU64::new(0));
    /// let counter = Arc::clone(&denied);
    /// limiter.listen(move |event| {
    ///     if let Event::Denied { .. } = event {
    ///         counter.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// let admitted = (0..3).filter(|_| limiter.try_acquire("k", &Cost::new()).is_ok()).count();
    /// assert_eq!((admitted, denied.load(Ordering::Relaxed)), (1, 2));
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    pub fn listen(&self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        self.shared.core.events.listen(Listener { all: true, hear: Arc::new(listener) });
    }

    /// The same for news alone: all events but those that each reservation makes
    /// ([`Granted`](Event::Granted), [`Denied`](Event::Denied), [`Waited`](Event::Waited) and
    /// [`Settled`](Event::Settled)). So it costs a reservation nothing; how many there were
    /// [`totals`](super::State::totals) says.
    #[doc(hidden)]
    pub fn listen_for_news(&self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        self.shared.core.events.listen(Listener { all: false, hear: Arc::new(listener) });
    }

    /// Returns whether there may be a subscriber.
    #[cfg(feature = "tower")]
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.shared.core.events.has_subscribers()
    }

    /// Tells of what happened elsewhere.
    #[cfg(feature = "tower")]
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        self.shared.core.events.announce(event);
    }

    fn name(&self, key: &str) -> Name {
        self.shared.name(key, self.budget.as_ref())
    }
}

/// A reference to a [`Limiter`] that keeps only its clock alive: a listener, which the limiter keeps,
/// may have one.
#[derive(Clone)]
pub struct WeakLimiter {
    clock: Time,
    shared: Weak<Shared>,
    table: Weak<Table>,
}

impl WeakLimiter {
    /// The limiter, if it is still there.
    pub fn upgrade(&self) -> Option<Limiter> {
        Some(Limiter { shared: self.shared.upgrade()?, budget: None })
    }

    /// The limiter, for a while, without putting off its end: for what is attached to it. Changes made
    /// through it after that end are not reported.
    pub fn aside(&self) -> Option<Limiter> {
        let shared = Arc::new(Shared::new(self.table.upgrade()?));
        Some(Limiter { shared, budget: None })
    }

    /// The limiter's clock's time, whether it is there or not.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl DefaultLimits {
    /// These limits, for requests to this limiter.
    pub fn new(limiter: &Limiter, quota: &Quota) -> Self {
        Self::in_version(quota, limiter.shared.core.version())
    }
}

impl fmt::Debug for WeakLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakLimiter").finish_non_exhaustive()
    }
}

impl fmt::Debug for Limiter {
    /// Without its keys: there may be a million, and they may be API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("clock", &self.shared.core.clock).finish_non_exhaustive()
    }
}

/// Checks that there is a limit for each dimension that a cost names.
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
