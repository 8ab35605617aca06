use std::fmt;
use std::sync::Arc;

use crate::sync::atomic::{AtomicUsize, Ordering};

/// A bound on how many keys the requests of one origin may add, so that a flood of names from there
/// takes no place from keys that others add.
///
/// It counts the keys that were added through [`Limiter::with_key_budget`](super::Limiter::with_key_budget)
/// and are still kept. Keys that a quota names exactly always have a place, and aren't counted. Clones
/// are the same budget.
///
/// ```
/// use tollgate::limiter::{Code, KeyBudget, Limiter, UnknownKey};
/// use tollgate::{Cost, Quota};
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
    most: usize,
    taken: AtomicUsize,
}

impl KeyBudget {
    /// A budget of at most this many keys at a time.
    pub fn new(keys: usize) -> Self {
        Self(Arc::new(Inner { most: keys, taken: AtomicUsize::new(0) }))
    }

    /// Takes the place of one key. Returns whether there was one.
    pub(super) fn take(&self) -> bool {
        let more = |taken| (taken < self.0.most).then_some(taken + 1);
        let taken = self.0.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok()
    }

    /// Returns the place of one key.
    pub(super) fn give_back(&self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns whether it counts no key, and has no other clone.
    pub(super) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.taken.load(Ordering::Relaxed) == 0
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.taken.load(Ordering::Relaxed) >= self.0.most
    }
}

impl fmt::Debug for KeyBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.0.taken.load(Ordering::Relaxed);
        f.debug_struct("KeyBudget").field("most", &self.0.most).field("taken", &taken).finish()
    }
}
