//! The listeners of a queue: requests in the queue of another of their keys.

use std::task::Waker;

use super::WaitQueue;
use super::wakers::replace;

impl WaitQueue {
    /// Returns the wakers of all listeners.
    pub(crate) fn listener_wakers(&self) -> impl Iterator<Item = Waker> {
        self.listeners.iter().map(|(_, waker)| waker.clone())
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
}
