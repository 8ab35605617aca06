use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use paceline_limiter::seam;
use parking_lot::Mutex;

use crate::Timestamp;
use crate::limiter::{Limiter, Sleep};

/// The slots for requests of one layer that wait after their call.
///
/// A service that finds none free waits for one in order. When a request returns its slot, the first waiting
/// service has [`TURN_TIME`] to be polled; then the next one may be ready. A request that is no longer polled
/// while services wait loses its slot, and takes it again when it is polled. So nobody depends on the polls of
/// another.
pub(super) struct QueueSlots(Arc<Shared>);

struct Shared {
    limiter: Limiter,
    slots: usize,
    /// The number of services that may be ready at once: the free slots, less the turns of woken services.
    open: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_ticket: u64,
    /// Requests that have a slot, with the wakers of those that were polled.
    holders: BTreeMap<u64, Option<Waker>>,
    /// Services that wait, by their tickets.
    waiting: BTreeMap<u64, Waker>,
    /// Services that were woken since a slot is free, with the ends of their turns.
    turns: BTreeMap<u64, Timestamp>,
    /// Requests that were woken to show that they are polled, with the times by which they have to be.
    checked: BTreeMap<u64, Timestamp>,
    last_checked: u64,
    /// The time of the last look at the slots.
    seen_at: Timestamp,
    /// Wakers to be dropped without the lock: one may own a task, and with it a slot.
    spent: Vec<Waker>,
}

/// The slot of a waiting request. Dropping it wakes the first service that waits for one.
pub(super) struct QueueSlot {
    shared: Arc<Shared>,
    ticket: u64,
}

/// The place of a service that waits for a slot.
pub(super) struct SlotWait {
    shared: Arc<Shared>,
    ticket: u64,
    timer: Sleep,
}

impl QueueSlots {
    pub(super) fn new(slots: usize, limiter: Limiter) -> Self {
        let slots = slots.max(1);
        let (open, state) = (AtomicUsize::new(slots), Mutex::default());
        Self(Arc::new(Shared { limiter, slots, open, state }))
    }

    /// Polls until a slot is free. It takes none: a service that is ready may be forgotten.
    #[inline]
    pub(super) fn poll_free(
        &self,
        wait: &mut Option<Box<SlotWait>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if wait.is_none() && self.0.open.load(Ordering::Relaxed) > 0 {
            return Poll::Ready(());
        }
        self.poll_turn(wait, cx)
    }

    fn poll_turn(&self, wait: &mut Option<Box<SlotWait>>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = self.0.limiter.now();
            let ticket = wait.as_ref().map(|wait| wait.ticket);
            let is_free = self.0.with(now, |state, slots| {
                let ticket = ticket.unwrap_or_else(|| state.next_ticket());
                let is_free = state.admits(ticket, slots);
                if !is_free {
                    let old = state.waiting.insert(ticket, cx.waker().clone());
                    let until = state.checks_at(ticket, now);
                    return Err((ticket, old, state.check_holders(now), until));
                }
                Ok(())
            });
            let (ticket, old, woken, until) = match is_free {
                Ok(()) => {
                    *wait = None;
                    return Poll::Ready(());
                }
                Err(pending) => pending,
            };
            drop(old);
            woken.into_iter().for_each(Waker::wake);
            let wait = wait.get_or_insert_with(|| {
                let (shared, timer) =
                    (Arc::clone(&self.0), seam::sleep_until(&self.0.limiter, until));
                Box::new(SlotWait { shared, ticket, timer })
            });
            std::task::ready!(wait.timer.as_mut().poll(cx));
            wait.timer = seam::sleep_until(&self.0.limiter, until);
        }
    }

    /// Takes the slot of a request that waits. A service may have been ready when the last slot was taken; its
    /// request waits without one.
    pub(super) fn take(&self) -> Option<QueueSlot> {
        if self.0.slots == usize::MAX {
            return None;
        }
        let ticket = self.0.with(self.0.limiter.now(), |state, slots| {
            let ticket = state.next_ticket();
            let is_taken = state.holders.len() < slots;
            if is_taken {
                state.holders.insert(ticket, None);
            }
            is_taken.then_some(ticket)
        });
        ticket.map(|ticket| QueueSlot { shared: Arc::clone(&self.0), ticket })
    }
}

impl Shared {
    /// Changes the state, then wakes the services that have a turn now.
    fn with<T>(&self, now: Timestamp, change: impl FnOnce(&mut State, usize) -> T) -> T {
        let mut state = self.state.lock();
        state.resume(now);
        let mut woken = state.give_turns(self.slots, now);
        let result = change(&mut state, self.slots);
        woken.extend(state.give_turns(self.slots, now));
        self.open.store(state.open(self.slots), Ordering::Relaxed);
        let spent = std::mem::take(&mut state.spent);
        drop(state);
        drop(spent);
        woken.into_iter().for_each(Waker::wake);
        result
    }
}

impl State {
    fn next_ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// Moves all ends back after the clock was set back, and delays them after nobody was polled for a while: the
    /// whole program may have stood still.
    fn resume(&mut self, now: Timestamp) {
        let ends = self.checked.values_mut().chain(self.turns.values_mut());
        if now + OUT_OF_ORDER < self.seen_at {
            let back = self.seen_at - now;
            ends.for_each(|end| *end = end.saturating_sub(back));
            self.seen_at = now;
        } else {
            if self.seen_at + STANDSTILL < now {
                ends.for_each(|end| *end = (*end).max(now + CHANCE));
            }
            self.seen_at = self.seen_at.max(now);
        }
    }

    fn open(&self, slots: usize) -> usize {
        slots.saturating_sub(self.holders.len()).saturating_sub(self.turns.len())
    }

    /// Ends the turns and the slots of those that weren't polled in time, and gives turns to the first services
    /// that wait. Returns their wakers.
    fn give_turns(&mut self, slots: usize, now: Timestamp) -> Vec<Waker> {
        if self.turns.is_empty() && self.waiting.is_empty() {
            return Vec::new();
        }
        self.turns.retain(|_, end| *end > now);
        let Self { checked, holders, spent, .. } = self;
        checked.retain(|ticket, polls_by| {
            let is_kept = *polls_by > now;
            if !is_kept {
                spent.extend(holders.remove(ticket).flatten());
            }
            is_kept
        });
        let mut woken = Vec::new();
        while self.open(slots) > 0
            && let Some((ticket, waker)) = self.waiting.pop_first()
        {
            self.turns.insert(ticket, now + TURN_TIME);
            woken.push(waker);
        }
        woken
    }

    /// Returns whether a service is ready. Ends its wait and its turn then.
    fn admits(&mut self, ticket: u64, slots: usize) -> bool {
        let is_ready = self.turns.remove(&ticket).is_some() || self.open(slots) > 0;
        if is_ready {
            self.spent.extend(self.waiting.remove(&ticket));
        }
        is_ready
    }

    /// Returns the time at which a service that waits checks the slots again, in case those before it are no longer
    /// polled: the later, the more there are. The first one also looks after the turns of woken services.
    fn checks_at(&self, ticket: u64, now: Timestamp) -> Timestamp {
        let before = self.waiting.range(..ticket).take(MOST_BEFORE).count();
        let more = u32::try_from(before * before).unwrap_or(u32::MAX);
        let at = now + (FIRST_PERIOD + (FIRST_PERIOD / 64).saturating_mul(more));
        let turns = self.turns.values().copied().filter(|_| before == 0);
        turns.chain([at]).min().unwrap_or(at)
    }

    /// Checks that requests which hold slots are polled, a few at a time. Returns the wakers to call.
    fn check_holders(&mut self, now: Timestamp) -> Vec<Waker> {
        let mut woken = Vec::new();
        while self.checked.len() < CHECKED_HOLDERS.min(self.holders.len()) {
            let after = (Excluded(self.last_checked), Unbounded);
            let next = self.holders.range(after).next();
            let Some((&ticket, waker)) = next.or_else(|| self.holders.first_key_value()) else {
                break;
            };
            self.last_checked = ticket;
            self.checked.entry(ticket).or_insert_with(|| {
                woken.extend(waker.clone());
                now + POLL_TIME
            });
        }
        woken
    }
}

impl QueueSlot {
    /// Notes that the request was polled, so that it keeps its slot.
    pub(super) fn on_polled(&self, waker: &Waker) {
        let old = self.shared.with(self.shared.limiter.now(), |state, _| {
            state.checked.remove(&self.ticket);
            let own = state.holders.entry(self.ticket).or_default();
            let is_same = own.as_ref().is_some_and(|own| own.will_wake(waker));
            if is_same { None } else { own.replace(waker.clone()) }
        });
        drop(old);
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let now = self.shared.limiter.now();
        let waker = self.shared.with(now, |state, _| {
            state.checked.remove(&self.ticket);
            state.holders.remove(&self.ticket)
        });
        drop(waker);
    }
}

impl Drop for SlotWait {
    fn drop(&mut self) {
        let now = self.shared.limiter.now();
        let waker = self.shared.with(now, |state, _| {
            state.turns.remove(&self.ticket);
            state.waiting.remove(&self.ticket)
        });
        drop(waker);
    }
}

impl fmt::Debug for QueueSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueSlots").field("slots", &self.0.slots).finish_non_exhaustive()
    }
}

/// The time in which a woken service is polled, before the next one may be ready.
const TURN_TIME: Duration = Duration::from_millis(50);

/// The time in which a request that holds a slot is polled after it was woken.
const POLL_TIME: Duration = Duration::from_millis(350);

/// The time after which the first service that waits checks the slots again.
const FIRST_PERIOD: Duration = Duration::from_millis(250);

/// The time after which a service that waits has looked at the slots again, unless the program stands still.
const STANDSTILL: Duration = Duration::from_millis(300);

/// The time in which requests and services are polled after that.
const CHANCE: Duration = Duration::from_millis(100);

/// The time by which readings of the clock on several threads may be out of order.
const OUT_OF_ORDER: Duration = Duration::from_millis(10);

/// The number of requests that are checked at the same time.
const CHECKED_HOLDERS: usize = 16;

/// The number of services before one that its checks depend on.
const MOST_BEFORE: usize = 64;
