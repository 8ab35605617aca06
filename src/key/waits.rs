use std::task::Waker;

use super::queue::Turn;
use crate::quota::Cost;

/// What a key knows of waits, beside its queue. Few keys have it.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Requests in the queues of other keys that the quota of this key refuses once its limits are short, by arrival
    /// number.
    listeners: Vec<(u64, Waker)>,
    /// The most that one of them costs here, in each dimension.
    most: Option<Cost>,
    /// A long wait for the key was logged, and no request was served without one since.
    pub(crate) is_logged: bool,
}

impl Waits {
    /// Adds a request of this cost, or replaces its waker. Returns the old one, to be dropped without a lock.
    #[must_use = "to be dropped without a lock"]
    pub(crate) fn listen(&mut self, turn: Turn, cost: &Cost, waker: &Waker) -> Option<Waker> {
        let at = self.listeners.binary_search_by_key(&turn.arrival(), |(arrival, _)| *arrival);
        match at {
            Ok(at) if self.listeners[at].1.will_wake(waker) => None,
            Ok(at) => Some(std::mem::replace(&mut self.listeners[at].1, waker.clone())),
            Err(at) => {
                self.listeners.insert(at, (turn.arrival(), waker.clone()));
                self.most = Some(self.most.as_ref().map_or(cost.clone(), |most| most.max(cost)));
                None
            }
        }
    }

    /// Removes a request. Returns its waker, to be dropped without a lock.
    #[must_use = "to be dropped without a lock"]
    pub(crate) fn stop(&mut self, turn: Turn) -> Option<Waker> {
        let at = self.listeners.binary_search_by_key(&turn.arrival(), |(arrival, _)| *arrival);
        at.ok().map(|at| self.listeners.remove(at).1)
    }

    /// Returns the most that a listening request costs, if there is one.
    pub(crate) fn most(&self) -> Option<&Cost> {
        self.most.as_ref().filter(|_| !self.listeners.is_empty())
    }

    /// Removes all requests. Returns their wakers: each listens again if it still waits.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Waker> {
        self.most = None;
        std::mem::take(&mut self.listeners).into_iter().map(|(_, waker)| waker)
    }

    /// Returns whether there is nothing to know.
    pub(crate) fn is_empty(&self) -> bool {
        self.listeners.is_empty() && !self.is_logged
    }
}
