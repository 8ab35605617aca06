//! The queue of one key: requests and gates in the order in which their turn comes.
//!
//! Pure: wakers are stored and returned, never called here. The order is that of [`Turn`]: first in,
//! first out, requests before gates. A new policy (bands, flows, gates between requests) is another
//! order of `Turn`, computed where a request arrives ([`WaitQueue::enter`] inserts by it); nothing
//! else in this file looks into a turn.

use std::collections::VecDeque;
use std::task::Waker;

use smallvec::SmallVec;

/// A place in the order of a queue: the lowest goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    kind: Kind,
    /// Drawn on arrival; one order for all keys.
    arrival: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Takes a reservation.
    Request,
    /// Takes nothing: a service that asks when a request would be admitted.
    Gate,
}

/// The waiters of one key, and listeners that wait in the queue of another key.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    /// In the order of their turns.
    waiters: VecDeque<(Turn, Waker)>,
    /// Requests in the queue of another of their keys that ask a backend for this key too.
    listeners: Vec<(u64, Waker)>,
}

/// A waiter that has left a queue.
#[derive(Debug)]
pub(crate) struct Left {
    /// Its turn had come: the next one is to be woken.
    pub(crate) was_first: bool,
    /// To be dropped without a lock: a waker may own a task, and with it a permit.
    pub(crate) waker: Waker,
}

impl Turn {
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

    /// Inserts a waiter at the place that its turn is due, or keeps the place that it has.
    pub(crate) fn enter(&mut self, turn: Turn, waker: &Waker) {
        if let Err(at) = self.position(turn) {
            self.waiters.insert(at, (turn, waker.clone()));
        }
    }

    /// Replaces the waker of a waiter that stays. Returns the old one, to be dropped without a lock.
    #[must_use = "to be dropped without a lock"]
    pub(crate) fn set_waker(&mut self, turn: Turn, waker: &Waker) -> Option<Waker> {
        let at = self.position(turn).ok()?;
        replace(&mut self.waiters[at].1, waker)
    }

    /// Removes a waiter.
    #[must_use = "its waker is to be dropped without a lock"]
    pub(crate) fn remove(&mut self, turn: Turn) -> Option<Left> {
        let at = self.position(turn).ok()?;
        let was_first = self.rank_at(at) == 0;
        self.waiters.remove(at).map(|(_, waker)| Left { was_first, waker })
    }

    /// Returns how many waiters of the same kind come before this one; `None` if it doesn't wait.
    pub(crate) fn rank(&self, turn: Turn) -> Option<usize> {
        Some(self.rank_at(self.position(turn).ok()?))
    }

    /// Returns whether this waiter is the first of its kind.
    pub(crate) fn is_first(&self, turn: Turn) -> bool {
        self.rank(turn) == Some(0)
    }

    /// Returns whether a request waits whose turn comes before this one.
    pub(crate) fn has_request_before(&self, turn: Turn) -> bool {
        self.waiters.front().is_some_and(|(first, _)| first.kind == Kind::Request && *first < turn)
    }

    /// Returns the turn of the gate that is first among the gates.
    pub(crate) fn first_gate(&self) -> Option<Turn> {
        self.waiters.get(self.requests()).map(|(turn, _)| *turn)
    }

    /// Returns the waker of the waiter that goes next: the first request, else the first gate.
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

    /// Returns the wakers of those that a change concerns: the next waiter, and all listeners.
    pub(crate) fn changed(&self) -> impl Iterator<Item = Waker> {
        let listeners = self.listeners.iter().map(|(_, waker)| waker.clone());
        self.next().into_iter().chain(listeners)
    }

    /// Adds a listener, by the arrival number of its request.
    pub(crate) fn listen(&mut self, arrival: u64, waker: &Waker) {
        if !self.listeners.iter().any(|(number, _)| *number == arrival) {
            self.listeners.push((arrival, waker.clone()));
        }
    }

    /// Replaces the waker of a listener that stays. Returns the old one.
    #[must_use = "to be dropped without a lock"]
    pub(crate) fn set_listener_waker(&mut self, arrival: u64, waker: &Waker) -> Option<Waker> {
        let own = self.listeners.iter_mut().find(|(number, _)| *number == arrival)?;
        replace(&mut own.1, waker)
    }

    /// Removes a listener. Returns its waker.
    #[must_use = "to be dropped without a lock"]
    pub(crate) fn stop_listening(&mut self, arrival: u64) -> Option<Waker> {
        let at = self.listeners.iter().position(|(number, _)| *number == arrival)?;
        Some(self.listeners.swap_remove(at).1)
    }

    fn position(&self, turn: Turn) -> Result<usize, usize> {
        self.waiters.binary_search_by_key(&turn, |(turn, _)| *turn)
    }

    /// The rank among waiters of the same kind of the waiter at this position.
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

/// Wakers to be called, or dropped, after all locks are released: both may run any code.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    due: SmallVec<[Waker; 2]>,
    spent: SmallVec<[Waker; 2]>,
}

impl Wakers {
    pub(crate) fn wake(&mut self, due: impl IntoIterator<Item = Waker>) {
        self.due.extend(due);
    }

    pub(crate) fn drop_later(&mut self, spent: Option<Waker>) {
        self.spent.extend(spent);
    }

    /// Calls all wakers. Without a lock.
    pub(crate) fn call(self) {
        self.due.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
#[path = "../../tests/parts/queue.rs"]
mod tests;
