use std::sync::Arc;

use tokio::sync::Notify;

use super::denied_sample::Sample;
use super::dirty::Dirty;
use super::key_budget::KeyBudget;
use super::outputs::{Outputs, Quantile};
use crate::backend::{Backend, Reservation, ReserveError};
use crate::clock::{Boot, Clock, Sleep, SystemClock};
use crate::event::{Events, StripedTotals};
use crate::key::adapt::Pace;
use crate::plan::QuotaTable;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{RandomState, RwLock};
use crate::timestamp::Timestamp;

/// The state that all keys of a limiter share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) clock: Time,
    pub(super) quotas: RwLock<QuotaTable>,
    pub(super) hasher: RandomState,
    pub(super) events: Events,
    pub(super) max_waiting: AtomicUsize,
    pub(super) max_keys: usize,
    pub(super) outputs: Outputs,
    /// `None` where a refusal reduces no limit.
    pub(super) reduction: RwLock<Option<Pace>>,
    pub(super) backend: Option<Arc<dyn Backend>>,
    /// Keys with changes that a store has not collected yet.
    pub(super) dirty: Dirty,
    /// The number of keys in the table.
    pub(super) keys: AtomicUsize,
    /// The budgets that count keys: an entry has the number of its own, from 1.
    budgets: RwLock<Vec<KeyBudget>>,
    /// The number of entries made so far.
    entries: AtomicU32,
    pub(super) totals: StripedTotals,
    pub(super) denied: Sample,
    /// Wakes tasks that sleep until the limiter is closed.
    pub(super) closing: Notify,
    closed: AtomicBool,
    /// Open, and its buckets are in this process: the fast path applies.
    is_fast: AtomicBool,
    arrivals: AtomicU64,
    versions: AtomicU32,
}

/// The settings of a [`Builder`](super::Builder), validated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) max_waiting: usize,
    pub(super) max_keys: usize,
    pub(super) quantile: Quantile,
    pub(super) reduction: Option<Pace>,
}

/// The clock. The system's is called without dynamic dispatch.
#[derive(Debug, Clone)]
pub(super) enum Time {
    System(SystemClock),
    Other(Arc<dyn Clock>),
}

impl Time {
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
        clock: Time,
        quotas: QuotaTable,
        settings: Settings,
        backend: Option<Arc<dyn Backend>>,
    ) -> Self {
        Self {
            clock,
            quotas: RwLock::new(quotas),
            hasher: RandomState::default(),
            events: Events::default(),
            max_waiting: AtomicUsize::new(settings.max_waiting),
            max_keys: settings.max_keys,
            outputs: Outputs::new(settings.quantile),
            reduction: RwLock::new(settings.reduction),
            is_fast: AtomicBool::new(backend.is_none()),
            backend,
            dirty: Dirty::default(),
            keys: AtomicUsize::new(0),
            budgets: RwLock::default(),
            entries: AtomicU32::new(0),
            totals: StripedTotals::default(),
            denied: Sample::default(),
            closing: Notify::new(),
            closed: AtomicBool::new(false),
            arrivals: AtomicU64::new(0),
            versions: AtomicU32::new(0),
        }
    }

    /// Refuses new work from now on. A key that is locked afterwards grants nothing more.
    pub(super) fn close(&self) {
        self.is_fast.store(false, Ordering::Release);
        self.closed.store(true, Ordering::Release);
        self.closing.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns whether the limiter is open and its buckets are in this process. To be asked under
    /// the lock of a key.
    #[inline]
    pub(super) fn is_fast(&self) -> bool {
        self.is_fast.load(Ordering::Acquire)
    }

    /// Returns whether the buckets are in this process.
    pub(super) fn is_local(&self) -> bool {
        self.backend.is_none()
    }

    /// Asks the backend for an answer out of what it has fetched for later, if it can give one.
    pub(super) fn reserve_here(
        &self,
        asked: &Arc<Reservation>,
    ) -> Option<Result<(), ReserveError>> {
        self.backend.as_ref()?.reserve_here(asked)
    }

    /// Takes room for one more key, if there is some; a reserved key always has room. To be called under
    /// the lock of the key's shard, so that only one thread takes it. Returns the number of the budget
    /// that counts the key, or 0.
    pub(super) fn take_room(&self, is_reserved: bool, budget: Option<&KeyBudget>) -> Option<u32> {
        if is_reserved {
            self.keys.fetch_add(1, Ordering::Relaxed);
            return Some(0);
        }
        if budget.is_some_and(|budget| !budget.take()) {
            return None;
        }
        let more = |keys| (keys < self.max_keys).then_some(keys + 1);
        if self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            budget.inspect(|budget| budget.give_back());
            return None;
        }
        Some(budget.map_or(0, |budget| self.budget_number(budget)))
    }

    /// Returns the room of a key, which a budget of this number has counted.
    pub(super) fn give_room_back(&self, budget: u32) {
        self.keys.fetch_sub(1, Ordering::Relaxed);
        if let Some(index) = budget.checked_sub(1) {
            self.budgets.read()[index as usize].give_back();
        }
    }

    /// Returns whether there is room for one more key of this budget.
    pub(super) fn has_room(&self, budget: Option<&KeyBudget>) -> bool {
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
            // A budget that counts no key here, and has no other user, gives its number to another.
            let index = budgets.iter().position(KeyBudget::is_unused).unwrap_or(budgets.len());
            match budgets.get_mut(index) {
                Some(unused) => *unused = budget.clone(),
                None => budgets.push(budget.clone()),
            }
            u32::try_from(index + 1).unwrap_or(u32::MAX)
        })
    }

    /// Draws the number of an entry.
    pub(super) fn entry_id(&self) -> u32 {
        self.entries.fetch_add(1, Ordering::Relaxed)
    }

    /// Draws a number of arrival, above all that were drawn before: one order for all keys.
    pub(super) fn arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Draws a version of plans, above all before: a permit of an older version holds nothing of a
    /// rule that came later.
    pub(super) fn version(&self) -> u32 {
        self.versions.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn max_waiting(&self) -> usize {
        self.max_waiting.load(Ordering::Relaxed)
    }

    /// Returns the hash by which a key is found.
    #[inline]
    pub(super) fn hash(&self, key: &str) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key.as_bytes());
        hasher.finish()
    }
}
