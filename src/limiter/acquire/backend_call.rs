use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Acquire, HAS_BACKEND, Stage};
use crate::backend::{Ending, Reservation, Reserving};
use crate::limiter::queued_request::{Progress, QueuedRequest};
use crate::limiter::request::Request;
use crate::timestamp::Timestamp;

/// A queued request whose reservation a backend decides about.
pub(super) struct BackendCall {
    queued: Box<QueuedRequest>,
    reservation: Arc<Reservation>,
    reserving: Reserving,
    /// The time at which the answer is due.
    until: Timestamp,
}

impl BackendCall {
    /// Cancels the call and leaves the queue.
    pub(super) fn cancel(self, request: &Request) {
        let Self { mut queued, reservation, reserving, .. } = self;
        drop(reserving);
        if let Some(backend) = &request.core().backend {
            backend.end(&reservation, Ending::Released);
        }
        queued.leave(request);
    }
}

impl Acquire {
    /// Asks the backend. Returns the progress if the answer is known without a wait.
    pub(super) fn ask(&mut self, reservation: Arc<Reservation>) -> Option<Progress> {
        let core = self.request.core();
        let Some(answer) = core.reserve_here(&reservation) else {
            let backend = core.backend.as_ref().expect(HAS_BACKEND);
            let reserving = backend.reserve(&reservation);
            let until = core.clock.now() + backend.patience();
            // The stage changes last: if the backend panics, dropping the future still gives up the place
            // in the queue.
            if let Stage::Queued(queued) = std::mem::replace(&mut self.stage, Stage::Done) {
                let call = BackendCall { queued, reservation, reserving, until };
                self.stage = Stage::Asking(Box::new(call));
            }
            return None;
        };
        match &mut self.stage {
            Stage::Queued(queued) => {
                Some(queued.handle_answer(&mut self.request, reservation, answer))
            }
            _ => None,
        }
    }

    /// Polls the backend's answer.
    pub(super) fn poll_asking(&mut self, cx: &mut Context<'_>) -> Poll<Progress> {
        let Stage::Asking(call) = &mut self.stage else {
            unreachable!("polled only in the stage `Asking`");
        };
        let BackendCall { queued, reservation, reserving, until } = &mut **call;
        if let Poll::Ready(answer) = reserving.as_mut().poll(cx) {
            let progress = queued.handle_answer(&mut self.request, Arc::clone(reservation), answer);
            self.finish_call();
            return Poll::Ready(progress);
        }
        if queued.is_retired() {
            // Cancels the call, and asks again under the key that replaced the retired one.
            self.request.arrival = Some(queued.arrival());
            self.give_up();
            return Poll::Ready(Progress::Retired);
        }
        let until = *until;
        let Some(error) = queued.overdue(&self.request, until) else {
            let deadline = self.request.deadline.map(|deadline| deadline.max(until));
            std::task::ready!(self.poll_timer(deadline, cx));
            return self.poll_asking(cx);
        };
        self.give_up();
        Poll::Ready(Progress::Ended(Err(error)))
    }

    /// Returns to the queue after the backend has answered.
    fn finish_call(&mut self) {
        if let Stage::Asking(call) = std::mem::replace(&mut self.stage, Stage::Done) {
            self.stage = Stage::Queued(call.queued);
        }
    }
}
