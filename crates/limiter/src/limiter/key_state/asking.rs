use std::task::Waker;

use super::KeyState;
use crate::key::queue::{Answered, Asking, Attempt, Service, Standing, Turn, WaitQueue};

/// Requests that ask a backend.
impl KeyState {
    /// Returns the requests that ask, if there is a queue.
    pub(crate) fn asking(&self) -> Option<&Asking> {
        self.queue().map(WaitQueue::asking)
    }

    /// Returns whether requests in the queue wait for quota, and not only for answers to others.
    pub(crate) fn is_short(&self) -> bool {
        self.asking().is_some_and(Asking::is_short)
    }

    /// Moves a request from the queue to those that ask. The backend has to be called next.
    pub(crate) fn ask(&mut self, turn: Turn, attempt: Attempt, waker: &Waker) {
        let now = self.now();
        let extra = self.extra_mut();
        extra.wakers.drop_later(extra.queue.set_waker(turn, waker));
        extra.queue.ask(turn, attempt, now);
    }

    /// Notes that the backend was called, so that the next request may ask. `give_back` is called if the request is
    /// absent. Returns whether it still asks.
    pub(crate) fn on_asked(&mut self, turn: Turn, give_back: Waker) -> bool {
        let extra = self.extra.as_mut();
        let is_asking = extra.is_some_and(|extra| extra.queue.on_asked(turn, give_back));
        self.wake_next_to_ask();
        is_asking
    }

    /// Returns whether a granted request may use its grant. One that may not yet is woken when it may.
    pub(crate) fn standing(&mut self, turn: Turn, waker: &Waker) -> Standing {
        let Some(extra) = &mut self.extra else { return Standing::Absent };
        let asking = extra.queue.asking_mut();
        let spent = asking.set_waker(turn, waker);
        let standing = asking.standing(turn);
        extra.wakers.drop_later(spent);
        standing
    }

    /// Returns a request to the queue that was refused and waits.
    pub(crate) fn on_refused(&mut self, turn: Turn, service: Service) {
        let now = self.now();
        let answered = self.extra_mut().queue.on_refused(turn, service, now);
        self.finish_asking(answered);
    }

    /// Removes a request that asks, if it does: it is admitted or gives up.
    pub(super) fn end_asking(&mut self, turn: Turn, is_granted: bool) {
        if let Some(extra) = &mut self.extra
            && let Some(answered) = extra.queue.end_asking(turn, is_granted)
        {
            self.finish_asking(Some(answered));
        }
    }

    fn finish_asking(&mut self, answered: Option<Answered>) {
        let Some(Answered { waker, due }) = answered else { return };
        let extra = self.extra_mut();
        extra.wakers.drop_later(Some(waker));
        extra.wakers.wake(due);
        self.wake_next_to_ask();
    }

    fn wake_next_to_ask(&mut self) {
        let now = self.now();
        if let Some(extra) = &mut self.extra
            && extra.queue.asking().admits()
        {
            extra.wakers.wake(extra.queue.next(now));
        }
    }
}
