use std::fmt;
use std::sync::{Arc, Weak};

use smallvec::smallvec;
use tokio::sync::broadcast;

use super::acquire::Acquire;
use super::admission::{self, Answer};
use super::capacity::WaitForCapacity;
use super::core::{AnyClock, Core, Settings};
use super::feedback::Feedback;
use super::handle::KeyHandle;
use super::key_budget::KeyBudget;
use super::key_state::KeyState;
use super::permit::Permit;
use super::quotas_handle::Quotas;
use super::shared::Shared;
use super::state::LimiterState;
use super::table::{KeyRef, Table};
use crate::answer::decision::Decision;
use crate::answer::error::Refused;
use crate::answer::stats::KeyStats;
use crate::answer::stats::LimitLevels;
use crate::backend::Backend;
use crate::clock::Sleep;
use crate::event::{Event, Listener};
use crate::plan::DefaultLimits;
use crate::plan::QuotaRegistry;
use crate::quota::Key;
use crate::quota::{Cost, Quota};
use crate::timestamp::Timestamp;

/// A rate limiter that keeps every key within its quota. Clones share the same state.
#[derive(Clone)]
pub struct Limiter {
    pub(super) shared: Arc<Shared>,
    /// The budget that counts keys added through this clone.
    pub(super) budget: Option<KeyBudget>,
}

impl Limiter {
    pub(super) fn new(
        clock: AnyClock,
        quotas: QuotaRegistry,
        settings: &Settings,
        backend: Option<Arc<dyn Backend>>,
    ) -> Self {
        let core = Arc::new(Core::new(clock, quotas, settings, backend));
        Self { shared: Arc::new(Shared::new(Table::new(&core))), budget: None }
    }

    /// Returns a clone of the limiter for requests of one origin: keys that they add count against this
    /// budget.
    #[must_use]
    pub fn with_key_budget(&self, budget: KeyBudget) -> Self {
        Self { budget: Some(budget), ..self.clone() }
    }

    /// Returns a handle to the quotas and settings of the limiter, which can change at run time.
    pub fn quotas(&self) -> Quotas<'_> {
        Quotas(&self.shared)
    }

    /// Returns whether a quota limits spending, so that requests need a price.
    #[inline]
    pub(crate) fn limits_spending(&self) -> bool {
        self.shared.core.limits_spending()
    }

    /// Returns whether a key is that of a mode of a provider of the limiter.
    pub(crate) fn knows_mode(&self, key: &str) -> bool {
        self.shared.core.quotas.read().model_of_mode(key).is_some()
    }

    /// Returns a handle that reports responses of providers and messages of other programs.
    pub fn feedback(&self) -> Feedback<'_> {
        Feedback { shared: &self.shared, budget: self.budget.as_ref() }
    }

    /// Returns a handle to the state of the limiter, for stores, metrics and status pages.
    pub fn state(&self) -> LimiterState<'_> {
        LimiterState { shared: &self.shared, budget: self.budget.as_ref() }
    }

    /// Reserves immediately, or returns the reason for the refusal. Doesn't overtake waiting requests.
    ///
    /// # Errors
    /// [`Refused`], with the time at which the request fits.
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

    /// Reserves immediately if the fast path can: the key has an entry, the cost fits and no request
    /// waits. `None` means that the slow path has to decide. `is_model` is `true` if a provider has read the key
    /// as a model.
    #[inline]
    pub(crate) fn try_fast(
        &self,
        key: &str,
        cost: &Cost,
        is_model: bool,
        is_answered: bool,
    ) -> Option<Permit> {
        let hash = self.shared.core.hash(key);
        let entry = self.shared.table.shard(hash).find(hash, key)?;
        let is_model = is_model && self.shared.core.has_providers();
        admission::try_fast(entry, cost, None, is_model, is_answered)
    }

    /// Waits until the cost fits and reserves it. Requests for one key are granted in order of arrival.
    ///
    /// Options are methods of the returned future, such as [`Acquire::max_wait`] and
    /// [`Acquire::limits`].
    ///
    /// # Errors
    /// The future returns an [`AcquireError`](super::AcquireError).
    ///
    /// # Cancel safety
    /// Dropping the future gives up its place in the queue and reserves nothing. So does a future that is
    /// never awaited, as in `let permit = limiter.acquire(key, &cost);`.
    ///
    /// # Panics
    /// The future panics if it has to wait for a time outside a tokio runtime with timers.
    #[inline]
    #[must_use = "nothing is reserved until the future is awaited"]
    pub fn acquire(&self, key: &str, cost: &Cost) -> Acquire {
        Acquire::new(smallvec![self.key_ref(key)], cost.clone())
    }

    /// Waits until the cost fits under several keys, such as a tenant, a model and an account, and
    /// reserves it under all of them or none.
    ///
    /// While one of the keys is short, the request waits in the queue of that key only and doesn't hold
    /// up requests for the other keys. List the narrowest key first: a tenant before its model, a model
    /// before the account. A key that is listed twice counts once.
    ///
    /// # Panics
    /// Panics if `keys` is empty. The future panics if it has to wait for a time outside a tokio runtime with
    /// timers.
    ///
    /// # Errors
    /// The future returns an [`AcquireError`](super::AcquireError) with the key that refused.
    ///
    /// # Cancel safety
    /// The same as [`acquire`](Self::acquire).
    #[must_use = "nothing is reserved until the future is awaited"]
    pub fn acquire_all<K: AsRef<str>>(&self, keys: &[K], cost: &Cost) -> Acquire {
        assert!(!keys.is_empty(), "a request needs at least one key");
        let keys = keys.iter().map(|key| self.key_ref(key.as_ref()));
        Acquire::new(keys.collect(), cost.clone())
    }

    /// Checks whether a request would be admitted now, without reserving anything. Returns the
    /// statistics of the key with the answer.
    ///
    /// If a [`Backend`] keeps the buckets, the answer is based on the last known levels. To check a request
    /// with options or several keys, use [`Acquire::decide`].
    pub fn decide(&self, key: &str, cost: &Cost) -> Decision {
        self.shared.table.decide(key, cost)
    }

    /// Waits until a request of this cost would be admitted, without reserving anything. Another request
    /// may take the capacity first; [`acquire`](Self::acquire) avoids that race.
    ///
    /// # Errors
    /// The future returns an [`AcquireError`](super::AcquireError).
    ///
    /// # Cancel safety
    /// Dropping the future gives up its place, and wakes the next waiters.
    ///
    /// # Panics
    /// The future panics if it has to wait for a time outside a tokio runtime with timers.
    #[must_use = "the future does not wait until it is awaited"]
    pub fn wait_for_capacity(&self, key: &str, cost: &Cost) -> WaitForCapacity {
        WaitForCapacity::new(self.key(key), cost.clone())
    }

    /// Returns a handle to a key, which saves a lookup for each request.
    ///
    /// # Errors
    /// [`Refused`] if the key is unknown and unknown keys are refused, or if there are too many keys.
    pub fn key(&self, key: &str) -> Result<KeyHandle, Refused> {
        KeyHandle::new(self.key_ref(key))
    }

    /// Returns the current statistics of a key: the limits of its quota if it was never used, and no
    /// limits if it is unknown.
    pub fn stats(&self, key: &str) -> KeyStats {
        self.shared.table.stats(key)
    }

    /// Returns the limits of a key with their current levels.
    pub(crate) fn limit_levels(&self, key: &str) -> LimitLevels {
        let backend = self.shared.core.backend.as_ref();
        let levels = |key: &Key, state: &KeyState| state.limit_levels(key, backend);
        self.shared.table.peek(key, levels).unwrap_or_default()
    }

    /// Returns the time of the limiter's clock.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.shared.core.clock.now()
    }

    /// Returns a future that is ready when [`now`](Self::now) has reached `time`.
    pub(crate) fn sleep_until(&self, time: Timestamp) -> Sleep {
        self.shared.core.clock.sleep_until(time)
    }

    /// Returns the same future, which is also ready as soon as the limiter is closed.
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

    /// Resets the usage of a key, and ends its cool-down, an outage of its server and the refusal of its account.
    /// Requests in flight keep their reservations. Doesn't wait for a backend;
    /// [`LimiterState::reset`](super::LimiterState::reset) does.
    pub fn reset(&self, key: &str) {
        self.state().reset_by(Some(key), |backend, key| backend.reset(key));
    }

    /// Resets all keys as [`reset`](Self::reset) does. Of the keys that a [`Backend`](super::Backend) keeps, only those that
    /// have an entry here are reset.
    pub fn reset_all(&self) {
        self.state().reset_by(None, |backend, key| backend.reset(key));
    }

    /// Closes the limiter: refuses new requests and rejects waiting ones immediately, and then waits until
    /// the [`Backend`](super::Backend) and attached stores have finished.
    /// Permits in flight still settle and release as usual.
    ///
    /// # Cancel safety
    /// The limiter is closed once the future was polled. Dropping the future doesn't reopen it.
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

    /// Returns a reference that doesn't keep the limiter alive.
    pub fn downgrade(&self) -> WeakLimiter {
        let Shared { core, table, .. } = &*self.shared;
        let (shared, table) = (Arc::downgrade(&self.shared), Arc::downgrade(table));
        WeakLimiter { clock: core.clock.clone(), shared, table }
    }

    /// Subscribes to all later events. A subscriber that lags more than 4,096 events behind loses the
    /// oldest; a [listener](Self::listen) loses none.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.shared.core.events.subscribe()
    }

    /// Calls `listener` with every later event, until the limiter is dropped.
    ///
    /// The call happens synchronously on the thread that causes the event, with no lock held. It should
    /// be quick and must not panic, since dropping a [`Permit`](super::Permit) calls it too. A listener
    /// that holds a clone of the limiter keeps it alive for ever; use a
    /// [`WeakLimiter`](super::WeakLimiter) instead.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use paceline_limiter::{Cost, Limiter, Quota, limiter::Event};
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
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
    /// ```
    pub fn listen(&self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        self.shared.core.events.listen(Listener { wants_all: true, call: Arc::new(listener) });
    }

    /// Calls `listener` with every later event except those of single reservations
    /// ([`Granted`](Event::Granted), [`Denied`](Event::Denied), [`Waited`](Event::Waited) and
    /// [`Settled`](Event::Settled)), so that it costs a reservation nothing.
    /// [`totals`](super::LimiterState::totals) counts those.
    pub(crate) fn on_change(&self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        self.shared.core.events.listen(Listener { wants_all: false, call: Arc::new(listener) });
    }

    /// Returns whether there may be a subscriber.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.shared.core.events.has_subscribers()
    }

    /// Sends an event of another component to subscribers.
    pub(crate) fn send_event(&self, event: impl FnOnce() -> Event) {
        self.shared.core.events.announce(event);
    }

    pub(super) fn key_ref(&self, key: &str) -> KeyRef {
        self.shared.key_ref(key, self.budget.as_ref())
    }
}

/// A reference to a [`Limiter`] that keeps only its clock alive, for listeners and components that the
/// limiter itself owns.
#[derive(Clone)]
pub struct WeakLimiter {
    clock: AnyClock,
    shared: Weak<Shared>,
    table: Weak<Table>,
}

impl WeakLimiter {
    /// Returns the limiter, if it still exists.
    pub fn upgrade(&self) -> Option<Limiter> {
        Some(Limiter { shared: self.shared.upgrade()?, budget: None })
    }

    /// Returns the limiter without delaying its end, for components attached to it. Changes made through
    /// it after that end are not reported.
    pub fn upgrade_detached(&self) -> Option<Limiter> {
        let shared = Arc::new(Shared::new(self.table.upgrade()?));
        Some(Limiter { shared, budget: None })
    }

    /// Returns the time of the limiter's clock, even if the limiter no longer exists.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl DefaultLimits {
    /// Creates default limits for requests to this limiter.
    pub fn new(limiter: &Limiter, quota: &Quota) -> Self {
        Self::in_version(quota, limiter.shared.core.next_version())
    }
}

impl fmt::Debug for WeakLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakLimiter").finish_non_exhaustive()
    }
}

impl fmt::Debug for Limiter {
    /// Leaves the keys out: there may be a million, and they may be API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("clock", &self.shared.core.clock).finish_non_exhaustive()
    }
}
