use std::sync::Arc;

use compact_str::CompactString;

use super::attached::Attached;
use super::backend::BackendStatus;
use super::busiest::Busiest;
use super::changes::KeyChanges;
use super::clock::Boot;
use super::limiter::Limiter;
use super::snapshot::KeySnapshot;
use super::ticket::Ticket;
use super::totals::Totals;
use crate::quota::{Cost, Dimension};

/// A handle to the state of a [`Limiter`], for stores, metrics and status pages.
///
/// ```
/// use tollgate::{Cost, Limiter, Quota};
/// let limiter = || Limiter::builder().quota("gpt-4o", Quota::new().rpd(1)).build();
/// let before = limiter()?;
/// before.try_acquire("gpt-4o", &Cost::new())?.settle(&Cost::new());
///
/// let after = limiter()?;
/// after.state().absorb(&before.state().snapshot());
/// assert!(after.try_acquire("gpt-4o", &Cost::new()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct State<'a>(&'a Limiter);

impl Limiter {
    /// Returns a handle that reads and writes the state of keys.
    pub fn state(&self) -> State<'_> {
        State(self)
    }
}

impl State<'_> {
    /// Returns the state of every key that has any, sorted by key.
    pub fn snapshot(&self) -> Vec<KeySnapshot> {
        self.0.snapshot()
    }

    /// Adds the state of an earlier run, or of another limiter, to this one's. Buckets that a
    /// [`Backend`](super::Backend) keeps don't change: their usage is known there.
    pub fn absorb(&self, snapshot: &[KeySnapshot]) {
        self.0.absorb(snapshot);
    }

    /// Returns the number of requests granted, denied and queued so far. The counts are exact, with or
    /// without subscribers, and counting takes no lock of its own.
    ///
    /// ```
    /// use tollgate::{Cost, Limiter, Quota};
    /// let limiter = Limiter::builder().quota("k", Quota::new().rpm(1)).build()?;
    /// let answers = [limiter.try_acquire("k", &Cost::new()), limiter.try_acquire("k", &Cost::new())];
    /// let totals = limiter.state().totals();
    /// assert_eq!((totals.granted, totals.denied, totals.waited), (1, 1, 0));
    /// # drop(answers);
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    pub fn totals(&self) -> Totals {
        self.0.totals()
    }

    /// Returns the statistics of the busiest of the keys that [`Limiter::keys`] lists, at most `most`
    /// of them. Each key is read at one point in time, but not all keys at the same.
    ///
    /// Takes a few ten ns for each key, independent of `most`, and never delays a request by more than
    /// a few µs.
    pub fn busiest(&self, most: usize) -> Busiest {
        self.0.busiest(most)
    }

    /// Returns the status of the [`Backend`](super::Backend), or `None` if there is none or it reports
    /// none.
    pub fn backend_status(&self) -> Option<BackendStatus> {
        self.0.backend_status()
    }

    /// Returns the reason for which the state is not saved, if the last write to a
    /// [store](crate::store) failed. After [`close`](Limiter::close), `None` means that the state
    /// outlasts this process.
    pub fn unsaved(&self) -> Option<String> {
        self.0.unsaved()
    }

    /// Records changes from now on, until they are collected: for each bucket the usage with its
    /// times, and the amount held.
    ///
    /// Only changes by this limiter are recorded. Usage of others that response headers show
    /// ([`Permit::observe`](super::Permit::observe)) and [absorbed](Self::absorb) state are left out.
    /// Buckets that a [`Backend`](super::Backend) keeps don't change here.
    #[doc(hidden)]
    pub fn track(&self) {
        self.0.track();
    }

    /// Returns the changes since the last call, sorted by key. Returns none unless the limiter
    /// [`track`](Self::track)s changes.
    ///
    /// Usage that isn't collected is kept for any length of time; entries of about the same age are
    /// merged.
    #[doc(hidden)]
    pub fn collect_changes(&self) -> Vec<KeyChanges> {
        self.0.collect_changes()
    }

    /// Applies changes by other limiters of the same store: their usage counts here too, and the
    /// amount they hold counts as held until the next call that states it. These changes are not
    /// collected here.
    ///
    /// Their usage is first offset against usage of others that response headers have shown since the
    /// last two collections, since both cover the same requests. A cool-down that ends later than the
    /// key's own replaces it, and 0 ends it. A reset clears usage and cool-down, except changes
    /// recorded here since then and not yet collected; the usage that comes with a reset is all usage
    /// since.
    #[doc(hidden)]
    pub fn apply_changes(&self, others: &[KeyChanges]) {
        self.0.apply_changes(others);
    }

    /// Returns the key of the first request denied since the last call, and the dimension that was
    /// short, if any. Only the first denial between two calls is recorded; the first call starts the
    /// recording.
    #[doc(hidden)]
    pub fn sample_denied(&self) -> Option<(CompactString, Option<Dimension>)> {
        self.0.sample_denied()
    }

    /// Attaches a component that is closed with the limiter.
    #[doc(hidden)]
    pub fn attach(&self, attached: Arc<dyn Attached>) {
        self.0.attach(attached);
    }

    /// Returns the quota that a permit of this key and cost took and that was detached as this ticket.
    /// Returns `false` if the key has been idle since and was dropped. A window that the permit
    /// started continues.
    ///
    /// Use a ticket once: a second time would return the quota of another request.
    #[doc(hidden)]
    pub fn give_back(&self, key: &str, cost: &Cost, ticket: Ticket) -> bool {
        self.0.give_back(key, cost, ticket)
    }

    /// Returns the clock's information about the current boot of the machine.
    #[doc(hidden)]
    pub fn boot(&self) -> Option<Boot> {
        self.0.boot()
    }
}
