use std::task::Waker;

use super::KeyState;
use crate::key::queue::{Turn, WaitQueue};
use crate::key::waits::Waits;
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// Requests that wait long, and requests that this key refuses while they wait for others.
impl KeyState {
    /// Wakes a request that waits for another key once this key doesn't admit its cost any more.
    pub(crate) fn listen_for_shortage(&mut self, turn: Turn, cost: &Cost, waker: &Waker) {
        let cost = self.plan().clip_guesses(cost).into_owned();
        let extra = self.extra_mut();
        let old = extra.waits.get_or_insert_default().listen(turn, &cost, waker);
        extra.wakers.drop_later(old);
    }

    /// Stops listening for a request that ends or waits here.
    pub(super) fn stop_listening_for_shortage(&mut self, turn: Turn) {
        self.change_waits(|waits| waits.stop(turn));
    }

    /// Wakes the requests that wait for other keys, if this key may not admit them any more.
    pub(super) fn wake_if_short(&mut self) {
        let most = self.extra.as_ref().and_then(|extra| extra.waits.as_ref()?.most());
        if most.is_some_and(|most| self.check_limits(most, self.now()).is_err()) {
            let Some(mut waits) = self.extra_mut().waits.take() else { return };
            let is_short = |cost: &Cost| self.check_limits(cost, self.now()).is_err();
            let short = waits.take_short(is_short);
            let extra = self.extra_mut();
            extra.waits = Some(waits);
            extra.wakers.wake(short);
            self.change_waits(|_| None);
        }
    }

    /// Notes that a long wait for the key is logged. Returns `false` if one was logged before.
    pub(crate) fn note_long_wait(&mut self) -> bool {
        let waits = self.extra_mut().waits.get_or_insert_default();
        !std::mem::replace(&mut waits.is_logged, true)
    }

    /// Returns whether a long wait for the key was logged.
    pub(crate) fn has_logged_wait(&self) -> bool {
        let waits = self.extra.as_ref().and_then(|extra| extra.waits.as_ref());
        waits.is_some_and(|waits| waits.is_logged)
    }

    /// Notes that a request was served without a long wait.
    pub(crate) fn end_long_wait(&mut self) {
        self.change_waits(|waits| {
            waits.is_logged = false;
            None
        });
    }

    fn change_waits(&mut self, change: impl FnOnce(&mut Waits) -> Option<Waker>) {
        let Some(extra) = &mut self.extra else { return };
        let Some(waits) = &mut extra.waits else { return };
        let waker = change(waits);
        if waits.is_empty() {
            extra.waits = None;
        }
        extra.wakers.drop_later(waker);
    }

    /// Notes the time at which the first request of the queue fits, if it is known.
    pub(crate) fn set_next_at(&mut self, turn: Turn, at: Option<Timestamp>) {
        if let Some(extra) = &mut self.extra
            && extra.queue.first_request() == Some(turn)
        {
            extra.next_at = at.map(|at| (turn, at));
        }
    }

    /// Returns the time at which the first request of the queue fits, as it was known when that was last polled.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        let (turn, at) = self.extra.as_ref()?.next_at?;
        (self.queue().and_then(WaitQueue::first_request) == Some(turn)).then_some(at)
    }
}
