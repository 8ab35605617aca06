use std::task::Waker;

use super::queue::Turn;
use crate::quota::Cost;

/// What a key knows of waits, beside its queue. Few keys have it.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Requests in the queues of other keys that the quota of this key refuses once its limits are short, by arrival
    /// number, with their cost here.
    listeners: Vec<(u64, Cost, Waker)>,
    /// The most that one of them costs here, in each dimension.
    most: Option<Cost>,
    /// A long wait for the key was logged, and no request was served without one since.
    pub(crate) is_logged: bool,
}

impl Waits {
    /// Adds a request of this cost, or replaces its waker. Returns the old one, to be dropped without a lock.
    #[must_use = "to be dropped without a lock"]
    pub(crate) fn listen(&mut self, turn: Turn, cost: &Cost, waker: &Waker) -> Option<Waker> {
        let at = self.listeners.binary_search_by_key(&turn.arrival(), |(arrival, ..)| *arrival);
        match at {
            Ok(at) if self.listeners[at].2.will_wake(waker) => None,
            Ok(at) => Some(std::mem::replace(&mut self.listeners[at].2, waker.clone())),
            Err(at) => {
                self.listeners.insert(at, (turn.arrival(), cost.clone(), waker.clone()));
                self.most = Some(self.most.as_ref().map_or(cost.clone(), |most| most.max(cost)));
                None
            }
        }
    }

    /// Removes a request. Returns its waker, to be dropped without a lock.
    #[must_use = "to be dropped without a lock"]
    pub(crate) fn stop(&mut self, turn: Turn) -> Option<Waker> {
        let at = self.listeners.binary_search_by_key(&turn.arrival(), |(arrival, ..)| *arrival);
        at.ok().map(|at| self.listeners.remove(at).2)
    }

    /// Returns the most that a listening request costs, if there is one.
    pub(crate) fn most(&self) -> Option<&Cost> {
        self.most.as_ref().filter(|_| !self.listeners.is_empty())
    }

    /// Removes the requests that are short. Returns their wakers: each listens again if it still waits.
    pub(crate) fn take_short(&mut self, is_short: impl Fn(&Cost) -> bool) -> Vec<Waker> {
        let short = self.listeners.extract_if(.., |(_, cost, _)| is_short(cost));
        let wakers = short.map(|(_, _, waker)| waker).collect();
        let costs = self.listeners.iter().map(|(_, cost, _)| cost);
        self.most = costs.fold(None, |most: Option<Cost>, cost| {
            Some(most.map_or(cost.clone(), |most| most.max(cost)))
        });
        wakers
    }

    /// Returns whether there is nothing to know.
    pub(crate) fn is_empty(&self) -> bool {
        self.listeners.is_empty() && !self.is_logged
    }
}
