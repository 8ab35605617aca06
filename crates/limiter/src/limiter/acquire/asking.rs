use std::sync::Arc;
use std::task::{Context, Poll};

use super::backend_call::BackendCall;
use super::{Acquire, HAS_BACKEND, Stage};
use crate::limiter::ask_hold::AskHold;
use crate::limiter::asked::Question;
use crate::limiter::queued_request::{CHECK_AGAIN, Polled, Progress};

/// Calls to the backend.
impl Acquire {
    /// Asks the backend.
    pub(super) fn ask(&mut self, question: Question) {
        let core = self.request.core();
        let backend = core.backend.as_ref().expect(HAS_BACKEND);
        let Question { reservation, keeps_place, slot } = question;
        let reserving = match core.reserve_here(&reservation) {
            Some(answer) => Box::pin(std::future::ready(answer)),
            None if keeps_place => backend.reserve(&reservation),
            None => backend.reserve_once(&reservation),
        };
        let until = core.clock.now() + backend.patience();
        let hold = AskHold::new(core, reservation, slot);
        // The stage changes last: if the backend panics, dropping the future still gives up the place
        // in the queue.
        if let Stage::Queued(queued) = std::mem::replace(&mut self.stage, Stage::Done) {
            if !queued.on_asked(Arc::clone(&hold).into()) {
                hold.give_back();
            }
            let call = BackendCall { queued, reserving, answer: None, hold, until };
            self.stage = Stage::Asking(Box::new(call));
        }
    }

    /// Polls the backend's answer.
    pub(super) fn poll_asking(&mut self, cx: &mut Context<'_>) -> Poll<Progress> {
        let Stage::Asking(call) = &mut self.stage else {
            unreachable!("polled only in the stage `Asking`");
        };
        if call.hold.is_given_back() {
            return Poll::Ready(self.ask_again());
        }
        let BackendCall { queued, reserving, answer, hold, until } = &mut **call;
        let until = *until;
        if answer.is_none()
            && let Poll::Ready(given) = reserving.as_mut().poll(cx)
        {
            *answer = Some(given);
            hold.return_slot();
        }
        if let Some(given) = *answer
            && let Some(progress) =
                queued.handle_answer(&mut self.request, given, until, cx.waker())
        {
            self.finish_call();
            return Poll::Ready(progress);
        }
        let polls_by = match queued.on_polled() {
            Polled::By(time) => time,
            Polled::Absent => return Poll::Ready(self.ask_again()),
            Polled::Retired => {
                // Cancels the call, and asks again under the key that replaced the retired one.
                self.request.arrival = Some(queued.arrival());
                self.give_up();
                return Poll::Ready(Progress::Retired);
            }
        };
        let is_granted = answer.is_some();
        let Some(error) = queued.overdue(&self.request, until) else {
            let deadline = self.request.deadline.map(|deadline| deadline.max(until));
            let due = if is_granted { Some(until) } else { deadline };
            let due = due.into_iter().chain([polls_by]).min();
            std::task::ready!(self.poll_timer(due, cx));
            return self.poll_asking(cx);
        };
        self.give_up();
        Poll::Ready(Progress::Ended(Err(error)))
    }

    /// Returns to the queue, after the request was passed since it wasn't polled.
    fn ask_again(&mut self) -> Progress {
        if let Stage::Asking(call) = std::mem::replace(&mut self.stage, Stage::Done) {
            let BackendCall { mut queued, reserving, hold, .. } = *call;
            drop(reserving);
            hold.give_back();
            queued.forget_reservation();
            self.stage = Stage::Queued(queued);
        }
        CHECK_AGAIN
    }

    /// Returns to the queue after the backend has answered.
    fn finish_call(&mut self) {
        if let Stage::Asking(call) = std::mem::replace(&mut self.stage, Stage::Done) {
            self.stage = Stage::Queued(call.queued);
        }
    }
}
