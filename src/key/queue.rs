//! The queue of one key: requests and gates in the order of their turns.
//!
//! Pure: wakers are stored and returned, never called here. [`Turn`] defines the order: first in, first
//! out, requests before gates. A new policy (priorities, fair shares, gates between requests) is another
//! order of `Turn`, computed when a request arrives; [`WaitQueue::enter`] inserts by it.

use std::collections::VecDeque;
use std::task::Waker;

use smallvec::SmallVec;

/// A position in the order of a queue: the lowest goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    kind: Kind,
    /// Assigned on arrival, in one sequence for all keys.
    arrival: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A request, which reserves.
    Request,
    /// A gate, which only waits until a request would be admitted.
    Gate,
}

/// The waiters of one key, and listeners, which wait in the queue of another key.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    /// In the order of their turns.
    waiters: VecDeque<(Turn, Waker)>,
    /// The arrival numbers of requests that wait in the queue of another of their keys for a backend,
    /// which decides about this key too.
    listeners: Vec<(u64, Waker)>,
}

/// A waiter that was removed from a queue.
#[derive(Debug)]
pub(crate) struct RemovedWaiter {
    /// `true` if it was the first of its kind, so that the next one has to be woken.
    pub(crate) was_first: bool,
    /// Must be dropped without a lock, since a waker may own a task, and that a permit.
    pub(crate) waker: Waker,
}

impl Turn {
    /// The turn behind every request that has an arrival number.
    pub(crate) const LAST: Self = Self::request(u64::MAX);

    pub(crate) const fn request(arrival: u64) -> Self {
        Self { kind: Kind::Request, arrival }
    }

    pub(crate) const fn gate(arrival: u64) -> Self {
        Self { kind: Kind::Gate, arrival }
    }

    pub(crate) fn arrival(self) -> u64 {
        self.arrival
    }

    pub(crate) fn is_gate(self) -> bool {
        self.kind == Kind::Gate
    }
}

impl WaitQueue {
    /// Returns whether the queue holds no waiter and no listener.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty() && self.listeners.is_empty()
    }

    /// Returns the number of requests that wait.
    pub(crate) fn requests(&self) -> usize {
        self.waiters.partition_point(|(turn, _)| turn.kind == Kind::Request)
    }

    /// Inserts a waiter at the position of its turn, unless it already waits.
    pub(crate) fn enter(&mut self, turn: Turn, waker: &Waker) {
        if let Err(at) = self.position(turn) {
            self.waiters.insert(at, (turn, waker.clone()));
        }
    }

    /// Replaces the waker of a waiter. Returns the old one.
    #[must_use = "the waker must be dropped without a lock"]
    pub(crate) fn set_waker(&mut self, turn: Turn, waker: &Waker) -> Option<Waker> {
        let at = self.position(turn).ok()?;
        replace(&mut self.waiters[at].1, waker)
    }

    /// Removes a waiter.
    #[must_use = "the waker must be dropped without a lock"]
    pub(crate) fn remove(&mut self, turn: Turn) -> Option<RemovedWaiter> {
        let at = self.position(turn).ok()?;
        let was_first = self.rank_at(at) == 0;
        self.waiters.remove(at).map(|(_, waker)| RemovedWaiter { was_first, waker })
    }

    /// Returns the number of waiters of the same kind before this one; `None` if it doesn't wait.
    pub(crate) fn rank(&self, turn: Turn) -> Option<usize> {
        Some(self.rank_at(self.position(turn).ok()?))
    }

    /// Returns whether this waiter is the first of its kind.
    pub(crate) fn is_first(&self, turn: Turn) -> bool {
        self.rank(turn) == Some(0)
    }

    /// Returns whether a request with an earlier turn waits.
    pub(crate) fn has_request_before(&self, turn: Turn) -> bool {
        self.waiters.front().is_some_and(|(first, _)| first.kind == Kind::Request && *first < turn)
    }

    /// Returns the turn of the first gate.
    pub(crate) fn first_gate(&self) -> Option<Turn> {
        self.waiters.get(self.requests()).map(|(turn, _)| *turn)
    }

    /// Returns the waker of the next waiter: the first request, or else the first gate.
    pub(crate) fn next(&self) -> Option<Waker> {
        self.waiters.front().map(|(_, waker)| waker.clone())
    }

    /// Returns the wakers of all requests.
    pub(crate) fn request_wakers(&self) -> impl Iterator<Item = Waker> {
        self.waiters.iter().take(self.requests()).map(|(_, waker)| waker.clone())
    }

    /// Returns the wakers of all waiters and listeners.
    pub(crate) fn all_wakers(&self) -> impl Iterator<Item = Waker> {
        let listeners = self.listeners.iter().map(|(_, waker)| waker.clone());
        self.waiters.iter().map(|(_, waker)| waker.clone()).chain(listeners)
    }

    /// Returns the wakers to call after a change: those of the next waiter and of all listeners.
    pub(crate) fn change_wakers(&self) -> impl Iterator<Item = Waker> {
        let listeners = self.listeners.iter().map(|(_, waker)| waker.clone());
        self.next().into_iter().chain(listeners)
    }

    /// Adds a listener, by the arrival number of its request.
    pub(crate) fn listen(&mut self, arrival: u64, waker: &Waker) {
        if !self.listeners.iter().any(|(number, _)| *number == arrival) {
            self.listeners.push((arrival, waker.clone()));
        }
    }

    /// Replaces the waker of a listener. Returns the old one.
    #[must_use = "the waker must be dropped without a lock"]
    pub(crate) fn set_listener_waker(&mut self, arrival: u64, waker: &Waker) -> Option<Waker> {
        let own = self.listeners.iter_mut().find(|(number, _)| *number == arrival)?;
        replace(&mut own.1, waker)
    }

    /// Removes a listener. Returns its waker.
    #[must_use = "the waker must be dropped without a lock"]
    pub(crate) fn stop_listening(&mut self, arrival: u64) -> Option<Waker> {
        let at = self.listeners.iter().position(|(number, _)| *number == arrival)?;
        Some(self.listeners.swap_remove(at).1)
    }

    fn position(&self, turn: Turn) -> Result<usize, usize> {
        self.waiters.binary_search_by_key(&turn, |(turn, _)| *turn)
    }

    /// Returns the number of waiters of the same kind before the waiter at this position.
    fn rank_at(&self, at: usize) -> usize {
        match self.waiters[at].0.kind {
            Kind::Request => at,
            Kind::Gate => at - self.requests(),
        }
    }
}

fn replace(old: &mut Waker, new: &Waker) -> Option<Waker> {
    (!old.will_wake(new)).then(|| std::mem::replace(old, new.clone()))
}

/// Wakers to call or drop after all locks are released, since both may run arbitrary code.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    due: SmallVec<[Waker; 2]>,
    replaced: SmallVec<[Waker; 2]>,
}

impl Wakers {
    /// Adds wakers to call.
    pub(crate) fn wake(&mut self, due: impl IntoIterator<Item = Waker>) {
        self.due.extend(due);
    }

    /// Adds a waker to drop.
    pub(crate) fn drop_later(&mut self, replaced: Option<Waker>) {
        self.replaced.extend(replaced);
    }

    /// Calls the due wakers and drops the others. Must be called without a lock.
    pub(crate) fn call(self) {
        self.due.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
#[path = "../../tests/parts/queue.rs"]
mod tests;
