use std::sync::Arc;
use std::task::{Context, Waker};

use super::ask_slot::AskSlot;
use super::queue_place::QueuePlace;
use super::request::Request;
use super::scopes::{Blocker, Scopes};
use crate::answer::error::AcquireError;
use crate::backend::{Ending, Rechecking, Reservation, ReserveError};
use crate::engine::Wait;
use crate::key::denial::Denial;
use crate::timestamp::Timestamp;

/// What a waiting request has asked a backend.
pub(super) struct Asked {
    /// The reservation, which stays the same for all attempts.
    pub(super) reservation: Option<Arc<Reservation>>,
    /// The number of changes of its keys when it last asked.
    changes: u64,
    /// The last attempt kept a place in the backend.
    keeps_place: bool,
    /// The last refusal, until which the request doesn't ask again unless its keys change.
    refusal: Option<ReserveError>,
    /// Ready when the request should ask again before the time of the refusal.
    recheck: Option<Rechecking>,
    was_refused: bool,
}

/// A question to the backend.
pub(super) struct Question {
    pub(super) reservation: Arc<Reservation>,
    /// The backend keeps a place for the request if it refuses.
    pub(super) keeps_place: bool,
    pub(super) slot: Option<AskSlot>,
}

/// The result of an attempt to ask.
pub(super) enum Attempted {
    Asks(Question),
    /// The request has to wait, until this time at the latest.
    Waits(Option<Timestamp>),
    Failed(AcquireError),
}

impl Asked {
    pub(super) fn new(reservation: Option<Arc<Reservation>>) -> Self {
        Self {
            reservation,
            changes: 0,
            keeps_place: false,
            refusal: None,
            recheck: None,
            was_refused: false,
        }
    }

    /// Lets the request ask, if it may now.
    pub(super) fn ask(
        &mut self,
        place: &QueuePlace,
        request: &Request,
        scopes: &mut Scopes<'_>,
        waker: &Waker,
    ) -> Attempted {
        let changes = scopes.changes();
        if let Some(refusal) = self.refusal
            && self.changes == changes
            && request.can_wait(scopes.now())
            && refusal.wait() > Wait::At(scopes.now())
            && !self.should_recheck(waker)
        {
            return Attempted::Waits(refusal.time());
        }
        let reservation = request.reservation(scopes, self.reservation.take());
        self.reservation = Some(Arc::clone(&reservation));
        let Some((slot, keeps_place)) =
            place.ask(request, scopes, &reservation, !self.was_refused, waker)
        else {
            let blocker = Blocker::at(place.scope, Denial::OthersWaiting(Wait::Unknown));
            let error = request.wait_error(scopes, blocker);
            return error
                .map_or_else(|| Attempted::Waits(place.due(request, scopes)), Attempted::Failed);
        };
        place.listen(scopes, waker);
        (self.changes, self.keeps_place) = (changes, keeps_place);
        (self.refusal, self.recheck) = (None, None);
        Attempted::Asks(Question { reservation, keeps_place, slot })
    }

    /// Returns the key that blocks the request, if the backend has said so.
    pub(super) fn blocker(&self, place: &QueuePlace) -> Option<Blocker> {
        self.refusal.map(|refusal| Blocker::at_backend(place.scope, refusal))
    }

    /// Notes a refusal. Returns the error, without a wait if the answer is out of date and the request asks again.
    pub(super) fn on_refused(
        &mut self,
        error: ReserveError,
        request: &Request,
        scopes: &Scopes<'_>,
    ) -> ReserveError {
        self.was_refused = true;
        if self.changes != scopes.changes() && request.can_wait(scopes.now()) {
            return ReserveError::Full(Wait::Unknown);
        }
        // Without a place in the backend, the request asks again as soon as its turn has come.
        if self.keeps_place {
            self.refusal = Some(error);
            let backend = request.core().backend.as_ref().zip(self.reservation.as_ref());
            self.recheck = backend.and_then(|(backend, reservation)| backend.recheck(reservation));
        }
        error
    }

    /// Returns whether the last refusal is out of date.
    fn should_recheck(&mut self, waker: &Waker) -> bool {
        let mut cx = Context::from_waker(waker);
        let recheck = self.recheck.as_mut();
        let is_due = recheck.is_some_and(|recheck| recheck.as_mut().poll(&mut cx).is_ready());
        if is_due {
            (self.refusal, self.recheck) = (None, None);
        }
        is_due
    }

    /// Releases the reservation in the backend.
    pub(super) fn release(&self, request: &Request) {
        if let (Some(backend), Some(reservation)) = (&request.core().backend, &self.reservation) {
            backend.end(reservation, Ending::Released);
        }
    }
}
