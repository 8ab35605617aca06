//! The state of one key, and all code that changes it.
//!
//! Here: the clock and the lock. The other files extend [`KeyState`] by one subject each:
//!
//! - [`reservations`]: admission, reservation and settlement.
//! - [`queueing`]: waiting requests and gates.
//! - [`asking`]: requests that ask a backend.
//! - [`plan_changes`]: another plan, a reset, retirement.
//! - [`evidence`]: cool-downs, reductions and response headers.
//! - [`exchange`]: stores and other processes.
//! - [`levels`]: the levels of the limits, and statistics.
//! - [`waits`]: long waits, and requests that a quota refuses while they wait for another key.

mod asking;
mod evidence;
mod exchange;
mod levels;
mod plan_changes;
mod queueing;
mod reservations;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Timeline;
use crate::key::adapt::Adapt;
use crate::key::journal::Journal;
use crate::key::limits::Limits;
use crate::key::queue::{Claims, Turn, WaitQueue, Wakers};
use crate::key::waits::Waits;
use crate::plan::Plan;
use crate::timestamp::Timestamp;

/// The state of one key.
///
/// It owns its parts and changes them together: a reservation is made in the limits, recorded in the
/// journal, and noted for the comparison with headers. The parts don't know it. Waiters that a change
/// concerns are woken by [`Locked`](super::entry::Locked), after the lock is released.
#[derive(Debug)]
pub(super) struct KeyState {
    limits: Limits,
    time: Timeline,
    /// `true` once a provider's answers have confirmed the limits, until it refuses a request.
    is_confirmed: bool,
    /// `None` while the key has nothing but its limits, as most keys do.
    extra: Option<Box<ExtraState>>,
}

/// The state that few keys have.
#[derive(Debug, Default)]
struct ExtraState {
    queue: WaitQueue,
    claims: Claims,
    adapt: Adapt,
    journal: Option<Box<Journal>>,
    waits: Option<Box<Waits>>,
    /// The first request of the queue when it was last polled, and the time at which it fits.
    next_at: Option<(Turn, Timestamp)>,
    /// Waiters to wake when the lock is released.
    wakers: Wakers,
    /// The number of changes so far. If it increases while a backend decides about a request, the
    /// backend's answer may be out of date.
    changes: u64,
    /// Requests with an arrival number up to this one wait for a quota that was removed.
    removed_at: u64,
    /// The key is unknown, and unknown keys are refused.
    is_unknown: bool,
    /// Another key's buckets count this key now, so its users have to look it up again.
    is_retired: bool,
}

impl ExtraState {
    /// Returns whether requests are admitted as if there were no extra state.
    #[inline]
    fn allows_fast_path(&self, now: Timestamp) -> bool {
        self.adapt.is_open(now)
            && !self.is_unknown
            && !self.is_retired
            && self.queue.is_empty()
            && self.claims.is_empty()
            && self.waits.is_none()
    }

    /// Returns whether a gate is the head of the queue, a claim may have lapsed, or a waiter is absent.
    fn has_queue_work(&self) -> bool {
        !self.claims.is_empty()
            || self.queue.head().is_some_and(Turn::is_gate)
            || self.queue.has_absent()
    }

    /// Returns whether the extra state holds nothing and can be dropped.
    fn is_needless(&self, now: Timestamp) -> bool {
        let is_observed = self.adapt.has_trace() || self.adapt.has_utilization(now);
        self.allows_fast_path(now) && self.journal.is_none() && !is_observed
    }
}

/// Construction, time and the lock.
impl KeyState {
    /// Creates the state of an unused key.
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        Self {
            limits: Limits::new(plan),
            time: Timeline::default(),
            is_confirmed: false,
            extra: None,
        }
    }

    /// Moves to a reading of the clock and returns the time to use, which doesn't run back unless the
    /// clock was set back.
    #[inline]
    pub(super) fn advance(
        &mut self,
        now: Timestamp,
        read: impl FnOnce() -> Timestamp,
    ) -> Timestamp {
        // Either the thread waited long for the lock, or the clock was set back. A reading under the
        // lock tells which.
        let now = if self.time.is_far_ahead(now) { read() } else { now };
        let (now, back) = self.time.advance(now);
        if !back.is_zero() {
            self.rebase(back);
        }
        now
    }

    #[cold]
    fn rebase(&mut self, back: Duration) {
        self.limits.rebase(back);
        if let Some(extra) = &mut self.extra {
            extra.adapt.rebase(back);
            extra.claims.rebase(back);
            extra.queue.rebase(back);
            // Their timers are those of the clock before.
            extra.wakers.wake(extra.queue.all_wakers());
            if let Some((_, at)) = &mut extra.next_at {
                *at = at.saturating_sub(back);
            }
            extra.journal.iter_mut().for_each(|journal| journal.rebase(back));
        }
    }

    /// Returns the time at which the key was locked.
    #[inline]
    pub(super) fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// Prepares the release of the lock: drops extra state that holds nothing, since keys without it
    /// take the fast path. Returns the wakers to call after the release, and whether the key has to be
    /// put on the list of dirty keys; `None` if there is nothing to do.
    #[inline]
    pub(super) fn unlock(&mut self) -> Option<(Wakers, bool)> {
        if self.extra.is_some() { self.unlock_extra() } else { None }
    }

    fn unlock_extra(&mut self) -> Option<(Wakers, bool)> {
        let now = self.now();
        let extra = self.extra.as_mut()?;
        let wakers = std::mem::take(&mut extra.wakers);
        let is_dirty = extra.journal.as_mut().is_some_and(|journal| journal.take_dirty());
        if extra.is_needless(now) {
            self.extra = None;
        }
        Some((wakers, is_dirty))
    }

    /// Returns whether the key has to be put on the list of dirty keys. The fast path calls this instead
    /// of [`unlock`](Self::unlock).
    #[inline]
    pub(super) fn take_dirty(&mut self) -> bool {
        let journal = self.extra.as_mut().and_then(|extra| extra.journal.as_mut());
        journal.is_some_and(|journal| journal.take_dirty())
    }

    /// Records a change of the limits, in the journal and for the comparison with headers.
    #[inline(always)]
    fn record(&mut self, record: impl FnOnce(&mut Journal, &Limits, Timestamp)) {
        let now = self.now();
        if let Self { limits, extra: Some(extra), .. } = self {
            if let Some(journal) = &mut extra.journal {
                record(journal, limits, now);
            }
            extra.adapt.note(limits, now);
        }
    }

    fn extra_mut(&mut self) -> &mut ExtraState {
        self.extra.get_or_insert_default()
    }
}
