use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::quota::{Cost, Key};

use super::core::Core;
use super::dirty::Collect;
use super::key_state::KeyState;
use crate::event::Event;
use crate::key::changes::KeyChanges;
use crate::key::queue::Wakers;
use crate::plan::Plan;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::timestamp::Timestamp;

/// One key, with its state behind a lock.
///
/// The table holds one `Arc` of an entry; permits, waiters, handles and the list of dirty keys hold
/// others. Clones are made under the lock of the table's shard or from another clone, so an entry with a
/// single `Arc` has no other user and can be dropped.
pub(super) struct Entry {
    pub(super) core: Arc<Core>,
    pub(super) key: Key,
    /// A number that distinguishes this entry from all others, including later ones of the same key.
    pub(super) id: u32,
    /// The number of the budget that counts the key, or 0 if none does.
    pub(super) budget: u32,
    /// `true` if answers of the provider are reported to the key.
    has_tests: AtomicBool,
    state: Mutex<KeyState>,
}

/// The state of a key under its lock. Dropping it releases the lock, and then wakes the waiters that
/// changes concern and delivers events.
pub(super) struct Locked<'a> {
    entry: &'a Arc<Entry>,
    /// `true` if the request counts to the key's limits on spending alone.
    pub(super) is_spending_key: bool,
    /// `None` once the lock is released.
    state: Option<MutexGuard<'a, KeyState>>,
}

impl Entry {
    pub(super) fn new(core: &Arc<Core>, key: Key, plan: Arc<Plan>, budget: u32) -> Self {
        let mut state = KeyState::new(plan);
        if core.dirty.is_tracked() {
            state.track(Timestamp::UNIX_EPOCH);
        }
        let (core, id) = (Arc::clone(core), core.next_entry_id());
        let has_tests = AtomicBool::new(false);
        Self { core, key, id, budget, has_tests, state: Mutex::new(state) }
    }

    /// Locks the key for the fast path, which takes no recovery steps and wakes no waiters.
    #[inline]
    pub(super) fn lock_fast(&self) -> MutexGuard<'_, KeyState> {
        let now = self.core.clock.now();
        let mut state = self.state.lock();
        state.advance(now, || self.core.clock.now());
        state
    }

    /// Locks the key, takes the recovery steps that are due, and opens the gates whose turn has come.
    pub(super) fn lock(self: &Arc<Self>) -> Locked<'_> {
        self.continue_locked(self.lock_fast())
    }

    /// Continues under the lock of the fast path, with the recovery steps that are due.
    pub(super) fn continue_locked<'a>(
        self: &'a Arc<Self>,
        state: MutexGuard<'a, KeyState>,
    ) -> Locked<'a> {
        let mut locked = Locked { entry: self, is_spending_key: false, state: Some(state) };
        locked.recover();
        locked.open_gates();
        locked
    }

    /// Returns whether answers of the provider are reported to the key.
    #[inline]
    pub(super) fn has_tests(&self) -> bool {
        self.has_tests.load(Ordering::Relaxed)
    }

    /// Returns the state of an entry that has no other user.
    pub(super) fn get_mut(&mut self, now: Timestamp) -> &mut KeyState {
        let state = self.state.get_mut();
        state.advance(now, || self.core.clock.now());
        state
    }

    /// Puts the key on the list of dirty keys.
    #[cold]
    pub(super) fn push_dirty(self: &Arc<Self>) {
        self.core.dirty.push(Arc::clone(self) as Arc<dyn Collect>);
    }
}

impl<'a> Locked<'a> {
    /// Moves to the later time at which another key was locked.
    pub(super) fn advance(&mut self, now: Timestamp) {
        let clock = &self.entry.core.clock;
        DerefMut::deref_mut(self).advance(now, || clock.now());
        self.recover();
    }

    pub(super) fn entry(&self) -> &'a Arc<Entry> {
        self.entry
    }

    pub(super) fn key(&self) -> &'a Key {
        &self.entry.key
    }

    /// Returns the part of a request's cost that counts under this key.
    pub(super) fn part<'c>(&self, cost: &'c Cost) -> Cow<'c, Cost> {
        if self.is_spending_key { Cow::Owned(cost.money()) } else { Cow::Borrowed(cost) }
    }

    /// Releases the lock. Returns the wakers to call after all locks are released.
    #[inline]
    pub(super) fn release(&mut self) -> Option<Wakers> {
        let mut state = self.state.take()?;
        let unlocked = state.unlock();
        self.entry.has_tests.store(state.has_tests(), Ordering::Relaxed);
        let (wakers, is_dirty) = unlocked?;
        if is_dirty {
            self.entry.push_dirty();
        }
        Some(wakers)
    }

    fn recover(&mut self) {
        if DerefMut::deref_mut(self).recover() {
            let (key, capacity) = (self.entry.key.clone(), self.capacity());
            self.entry.core.events.post(|| Event::Recovered { key, capacity });
        }
    }
}

impl Deref for Locked<'_> {
    type Target = KeyState;

    fn deref(&self) -> &KeyState {
        self.state.as_ref().expect(HELD)
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut KeyState {
        self.state.as_mut().expect(HELD)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if self.state.is_some() {
            if let Some(wakers) = self.release() {
                wakers.call();
            }
            self.entry.core.events.flush();
        }
    }
}

const HELD: &str = "the lock is held until it is released";

impl Collect for Entry {
    fn collect(&self) -> Option<KeyChanges> {
        self.state.lock().collect(&self.key)
    }
}

impl fmt::Debug for Entry {
    /// Leaves the key out, since it may be an API key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}
