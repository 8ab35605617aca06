use std::task::Waker;

use super::KeyState;
use crate::key::queue::{Turn, WaitQueue};
use crate::quota::Cost;

/// Waiting requests and gates.
impl KeyState {
    /// Returns the number of requests that wait.
    pub(in crate::limiter) fn waiting(&self) -> usize {
        self.extra.as_ref().map_or(0, |extra| extra.queue.requests())
    }

    /// Returns the queue, if there is one.
    pub(in crate::limiter) fn queue(&self) -> Option<&WaitQueue> {
        self.extra.as_ref().map(|extra| &extra.queue)
    }

    /// Removes a waiter, and a listener with its arrival number. Wakes the next waiter if the removed one
    /// was the first.
    pub(in crate::limiter) fn leave(&mut self, turn: Turn) {
        let Some(extra) = &mut self.extra else { return };
        if let Some(removed) = extra.queue.remove(turn) {
            if removed.was_first && turn.is_gate() {
                extra.gate_cost = None;
            }
            extra.wakers.drop_later(Some(removed.waker));
            extra.wakers.wake(extra.queue.next().filter(|_| removed.was_first));
        }
        extra.wakers.drop_later(extra.queue.stop_listening(turn.arrival()));
    }

    /// Inserts a waiter at the position of its turn, or replaces its waker if it already waits.
    pub(in crate::limiter) fn enter(&mut self, turn: Turn, waker: &Waker) {
        let extra = self.extra_mut();
        extra.wakers.drop_later(extra.queue.set_waker(turn, waker));
        extra.queue.enter(turn, waker);
    }

    /// Replaces the wakers of a waiter and of a listener, if they are in the queue.
    pub(in crate::limiter) fn update_wakers(&mut self, turn: Turn, waker: &Waker) {
        if let Some(extra) = &mut self.extra {
            extra.wakers.drop_later(extra.queue.set_waker(turn, waker));
            let arrival = turn.arrival();
            extra.wakers.drop_later(extra.queue.set_listener_waker(arrival, waker));
        }
    }

    /// Adds a listener to changes, for a request in the queue of another key.
    pub(in crate::limiter) fn listen(&mut self, turn: Turn, waker: &Waker) {
        self.extra_mut().queue.listen(turn.arrival(), waker);
    }

    /// Returns the cost that the first gate waits for.
    pub(in crate::limiter) fn gate_cost(&self) -> Option<&Cost> {
        self.extra.as_ref()?.gate_cost.as_ref()
    }

    pub(in crate::limiter) fn set_gate_cost(&mut self, cost: Cost) {
        self.extra_mut().gate_cost = Some(cost);
    }

    /// Returns whether a request with this turn waits behind another.
    pub(in crate::limiter) fn is_behind(&self, turn: Turn) -> bool {
        self.queue().is_some_and(|queue| queue.has_request_before(turn))
    }

    /// Returns whether a request with this arrival number waits for a quota that was removed.
    pub(in crate::limiter) fn is_quota_removed(&self, arrival: u64) -> bool {
        self.extra.as_ref().is_some_and(|extra| arrival <= extra.removed_at)
    }

    /// Counts a change and wakes the waiters that it concerns: the next one, and all listeners.
    pub(in crate::limiter) fn notify_change(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.changes += 1;
            extra.wakers.wake(extra.queue.change_wakers());
        }
    }

    /// Returns the number of changes so far.
    pub(in crate::limiter) fn changes(&self) -> u64 {
        self.extra.as_ref().map_or(0, |extra| extra.changes)
    }

    /// Wakes all waiters.
    pub(in crate::limiter) fn wake_all(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.wakers.wake(extra.queue.all_wakers());
        }
    }
}
