use std::fmt;
use std::sync::Arc;

use crate::sync::atomic::{AtomicUsize, Ordering};

/// A bound on the number of keys that requests of one origin may add, so that a flood of new keys from
/// there doesn't crowd out keys that others add.
///
/// It counts the keys that were added through [`Limiter::with_key_budget`](super::Limiter::with_key_budget)
/// and haven't been dropped. Keys that a quota names exactly are always accepted and aren't counted.
/// Clones share the same budget.
///
/// ```
/// use paceline_limiter::limiter::{Code, KeyBudget, Limiter, UnknownKey};
/// use paceline_limiter::{Cost, Quota};
///
/// let limiter = Limiter::builder()
///     .quota("gold", Quota::new().rpm(100))
///     .unknown_key(UnknownKey::Quota(Quota::new().rpm(10)))
///     .build()?;
/// let from_outside = limiter.with_key_budget(KeyBudget::new(1));
/// let _first = from_outside.try_acquire("a", &Cost::new())?;
/// let refused = from_outside.try_acquire("b", &Cost::new()).unwrap_err();
/// assert_eq!(refused.code, Code::TooManyKeys);
/// assert!(from_outside.try_acquire("gold", &Cost::new()).is_ok());
/// assert!(limiter.try_acquire("b", &Cost::new()).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct KeyBudget(Arc<Inner>);

struct Inner {
    max_keys: usize,
    keys: AtomicUsize,
}

impl KeyBudget {
    /// Creates a budget of at most this number of keys at a time.
    pub fn new(keys: usize) -> Self {
        Self(Arc::new(Inner { max_keys: keys, keys: AtomicUsize::new(0) }))
    }

    /// Counts one more key. Returns `false` if the budget is full.
    pub(super) fn count_key(&self) -> bool {
        let more = |keys| (keys < self.0.max_keys).then_some(keys + 1);
        self.0.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Stops counting one key.
    pub(super) fn uncount_key(&self) {
        self.0.keys.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns whether the budget counts no key and has no other clone.
    pub(super) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.keys.load(Ordering::Relaxed) == 0
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.keys.load(Ordering::Relaxed) >= self.0.max_keys
    }
}

impl fmt::Debug for KeyBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.0.keys.load(Ordering::Relaxed);
        let max_keys = self.0.max_keys;
        f.debug_struct("KeyBudget").field("max_keys", &max_keys).field("keys", &keys).finish()
    }
}
