use std::sync::Arc;

use tokio::sync::Notify;

use super::denied_sample::Sample;
use super::dirty::Dirty;
use super::former_shares::FormerShares;
use super::key_budget::KeyBudget;
use super::key_state::KeyState;
use super::outputs::{Outputs, Quantile};
use super::wait_policy::{Prepared, WaitPolicy};
use crate::backend::{Backend, Reservation, ReserveError};
use crate::clock::{Boot, Clock, Sleep, SystemClock};
use crate::event::{Events, StripedTotals};
use crate::key::adapt::Pace;
use crate::plan::QuotaRegistry;
use crate::quota::Key;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{RandomState, RwLock};
use crate::timestamp::Timestamp;

/// The state that all keys of a limiter share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) clock: AnyClock,
    pub(super) quotas: RwLock<QuotaRegistry>,
    pub(super) hasher: RandomState,
    pub(super) events: Events,
    pub(super) max_waiting: AtomicUsize,
    pub(super) max_keys: usize,
    wait_policy: RwLock<Option<Arc<Prepared>>>,
    limits_spending: AtomicBool,
    has_providers: AtomicBool,
    pub(super) outputs: Outputs,
    /// `None` if a refusal reduces no limit.
    pub(super) reduction: RwLock<Option<Pace>>,
    pub(super) backend: Option<Arc<dyn Backend>>,
    /// The number of requests that ask the backend beside the first ones of their queues.
    pub(super) asking: AtomicUsize,
    /// The keys with changes that a store hasn't collected yet.
    pub(super) dirty: Dirty,
    /// The number of keys in the table.
    pub(super) keys: AtomicUsize,
    /// The usage of quotas that keys share no longer.
    pub(super) former_shares: FormerShares,
    /// The budgets that count keys. An entry refers to its budget by number, from 1.
    budgets: RwLock<Vec<KeyBudget>>,
    /// The number of entries made so far.
    entries: AtomicU32,
    pub(super) totals: StripedTotals,
    pub(super) denied: Sample,
    /// Wakes tasks that sleep until the limiter is closed.
    pub(super) closing: Notify,
    closed: AtomicBool,
    /// `true` if the limiter is open and keeps its buckets in this process, so that the fast path applies.
    is_fast: AtomicBool,
    arrivals: AtomicU64,
    /// The number of requests that were queued again after a refusal.
    retried: AtomicU64,
    versions: AtomicU32,
}

/// The settings of a [`Builder`](super::Builder), validated.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) max_waiting: usize,
    pub(super) max_keys: usize,
    pub(super) quantile: Quantile,
    pub(super) reduction: Option<Pace>,
}

/// The clock of a limiter. The system's clock is called without dynamic dispatch.
#[derive(Debug, Clone)]
pub(super) enum AnyClock {
    System(SystemClock),
    Other(Arc<dyn Clock>),
}

impl AnyClock {
    #[inline]
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::System(clock) => clock.now(),
            Self::Other(clock) => clock.now(),
        }
    }

    pub(super) fn boot(&self) -> Option<Boot> {
        match self {
            Self::System(clock) => clock.boot(),
            Self::Other(clock) => clock.boot(),
        }
    }

    pub(super) fn sleep_until(&self, time: Timestamp) -> Sleep {
        match self {
            Self::System(clock) => clock.sleep_until(time),
            Self::Other(clock) => clock.sleep_until(time),
        }
    }
}

impl Core {
    pub(super) fn new(
        clock: AnyClock,
        quotas: QuotaRegistry,
        settings: &Settings,
        backend: Option<Arc<dyn Backend>>,
    ) -> Self {
        Self {
            former_shares: FormerShares::default(),
            clock,
            limits_spending: AtomicBool::new(quotas.limits_spending),
            has_providers: AtomicBool::new(quotas.has_providers()),
            quotas: RwLock::new(quotas),
            hasher: RandomState::default(),
            events: Events::default(),
            max_waiting: AtomicUsize::new(settings.max_waiting),
            max_keys: settings.max_keys,
            wait_policy: RwLock::default(),
            outputs: Outputs::new(settings.quantile),
            reduction: RwLock::new(settings.reduction),
            is_fast: AtomicBool::new(backend.is_none()),
            backend,
            asking: AtomicUsize::new(0),
            dirty: Dirty::default(),
            keys: AtomicUsize::new(0),
            budgets: RwLock::default(),
            entries: AtomicU32::new(0),
            totals: StripedTotals::default(),
            denied: Sample::default(),
            closing: Notify::new(),
            closed: AtomicBool::new(false),
            arrivals: AtomicU64::new(FIRST_ARRIVAL),
            retried: AtomicU64::new(0),
            versions: AtomicU32::new(0),
        }
    }

    /// Returns the name of a key in logs that servers keep: that of its quota, or `*`. A key that a quota doesn't name may
    /// be a secret, or any text of a client.
    pub(super) fn logged_name(&self, key: &str) -> Key {
        let name = self.quotas.read().name_of(key).cloned();
        // A key without a name has the limits of all others.
        name.unwrap_or_else(|| "*".into())
    }

    /// Refuses new work from now on. A key that is locked afterwards grants no more reservations.
    pub(super) fn close(&self) {
        self.is_fast.store(false, Ordering::Release);
        self.closed.store(true, Ordering::Release);
        self.closing.notify_waiters();
    }

    /// Changes the quotas.
    pub(super) fn change_quotas<T>(&self, change: impl FnOnce(&mut QuotaRegistry) -> T) -> T {
        let mut quotas = self.quotas.write();
        let changed = change(&mut quotas);
        self.limits_spending.store(quotas.limits_spending, Ordering::Relaxed);
        self.has_providers.store(quotas.has_providers(), Ordering::Relaxed);
        changed
    }

    /// Adds to a new key the usage of its quota from the time when keys shared it.
    pub(super) fn pass_on_share(&self, key: &str, state: &mut KeyState) {
        if self.former_shares.is_empty() {
            return;
        }
        let quotas = self.quotas.read();
        let name = quotas.name_of(key).map(|name| quotas.shared_key(name, key));
        drop(quotas);
        if let Some(name) = name {
            self.former_shares.pass_on(&name, state);
        }
    }

    /// Returns `true` if there are providers by whose rules models count.
    #[inline]
    pub(super) fn has_providers(&self) -> bool {
        self.has_providers.load(Ordering::Relaxed)
    }

    /// Returns whether a quota limits spending, so that requests need a price.
    #[inline]
    pub(super) fn limits_spending(&self) -> bool {
        self.limits_spending.load(Ordering::Relaxed)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns whether the limiter is open and its buckets are in this process. Must be called under
    /// the lock of a key.
    #[inline]
    pub(super) fn is_fast(&self) -> bool {
        self.is_fast.load(Ordering::Acquire)
    }

    /// Returns whether the buckets are in this process.
    pub(super) fn is_local(&self) -> bool {
        self.backend.is_none()
    }

    /// Reserves from capacity that the backend has fetched in advance. `None` means that the backend has
    /// to be called.
    pub(super) fn reserve_here(
        &self,
        reservation: &Arc<Reservation>,
    ) -> Option<Result<(), ReserveError>> {
        self.backend.as_ref()?.reserve_here(reservation)
    }

    /// Counts a new key, if the limiter and the budget allow one more; a reserved key is always allowed.
    /// Must be called under the lock of the key's shard, so that only one thread counts it. Returns the
    /// number of the budget that counts the key, or 0.
    pub(super) fn count_key(&self, is_reserved: bool, budget: Option<&KeyBudget>) -> Option<u32> {
        if is_reserved {
            self.keys.fetch_add(1, Ordering::Relaxed);
            return Some(0);
        }
        if budget.is_some_and(|budget| !budget.count_key()) {
            return None;
        }
        let more = |keys| (keys < self.max_keys).then_some(keys + 1);
        if self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            budget.inspect(|budget| budget.uncount_key());
            return None;
        }
        Some(budget.map_or(0, |budget| self.budget_number(budget)))
    }

    /// Stops counting a key that the budget of this number has counted.
    pub(super) fn uncount_key(&self, budget: u32) {
        self.keys.fetch_sub(1, Ordering::Relaxed);
        if let Some(index) = budget.checked_sub(1) {
            self.budgets.read()[index as usize].uncount_key();
        }
    }

    /// Returns whether the limiter and this budget allow one more key.
    pub(super) fn allows_key(&self, budget: Option<&KeyBudget>) -> bool {
        let is_full = budget.is_some_and(KeyBudget::is_full);
        self.keys.load(Ordering::Relaxed) < self.max_keys && !is_full
    }

    fn budget_number(&self, budget: &KeyBudget) -> u32 {
        let position = |budgets: &[KeyBudget]| {
            let index = budgets.iter().position(|other| other.is_same(budget))?;
            u32::try_from(index + 1).ok()
        };
        if let Some(number) = position(&self.budgets.read()) {
            return number;
        }
        let mut budgets = self.budgets.write();
        position(&budgets).unwrap_or_else(|| {
            // The number of a budget that counts no key here and has no other user is reused.
            let index = budgets.iter().position(KeyBudget::is_unused).unwrap_or(budgets.len());
            match budgets.get_mut(index) {
                Some(unused) => *unused = budget.clone(),
                None => budgets.push(budget.clone()),
            }
            u32::try_from(index + 1).unwrap_or(u32::MAX)
        })
    }

    /// Returns the next entry number.
    pub(super) fn next_entry_id(&self) -> u32 {
        self.entries.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the next arrival number, in one sequence for all keys.
    pub(super) fn next_arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the next arrival number of a request that the provider refused: before all new requests.
    pub(super) fn next_retry(&self) -> u64 {
        self.retried.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the next version of plans. A permit of an older version holds nothing of a rule that was
    /// added later.
    pub(super) fn next_version(&self) -> u32 {
        self.versions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns whether the answers of providers test the limits. A backend that keeps the buckets decides
    /// without them.
    pub(super) fn is_learning(&self) -> bool {
        self.is_local() && self.reduction.read().is_some_and(|pace| pace.is_adaptive)
    }

    pub(super) fn max_waiting(&self) -> usize {
        self.max_waiting.load(Ordering::Relaxed)
    }

    /// Returns the policy of the queues, if one is set.
    pub(super) fn wait_policy(&self) -> Option<Arc<Prepared>> {
        self.wait_policy.read().clone()
    }

    /// Sets the policy of the queues. Requests that wait keep their turns.
    pub(super) fn set_wait_policy(&self, policy: &WaitPolicy) {
        let policy = (*policy != WaitPolicy::new()).then(|| Arc::new(policy.prepare()));
        *self.wait_policy.write() = policy;
    }

    /// Returns the hash of a key.
    #[inline]
    pub(super) fn hash(&self, key: &str) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key.as_bytes());
        hasher.finish()
    }
}

/// Arrival numbers of new requests are above this, and those of refused requests below.
const FIRST_ARRIVAL: u64 = 1 << 48;

/// Returns whether the arrival number is that of a request that the provider has not refused.
pub(super) fn is_new_arrival(arrival: u64) -> bool {
    arrival > FIRST_ARRIVAL
}
