use std::task::Waker;

use super::asked::{Asked, Attempted, Question};
use super::long_wait;
use super::permit::Permit;
use super::queue_place::QueuePlace;
use super::request::{Request, Verdict};
use super::scopes::{Blocker, Entries, Scopes};
use crate::answer::error::AcquireError;
use crate::backend::ReserveError;
use crate::engine::Wait;
use crate::key::denial::Denial;
use crate::key::queue::Standing;
use crate::timestamp::Timestamp;

/// A request that waits in a queue.
pub(super) struct QueuedRequest {
    entries: Entries,
    place: QueuePlace,
    arrived_at: Timestamp,
    asked: Asked,
}

/// The result of an arrival.
pub(super) enum Arrival {
    Ended(Result<Permit, AcquireError>),
    Queued(QueuedRequest),
}

/// The result of a check of the keys while a request waits.
pub(super) enum Progress {
    Ended(Result<Permit, AcquireError>),
    /// The request has to check its keys again when it is woken, or at this time.
    Wait(Option<Timestamp>),
    /// The request has to ask the backend.
    Ask(Question),
    /// A key is retired, so the request has to arrive again with its number.
    Retired,
}

/// The state of a request that is polled while it asks.
pub(super) enum Polled {
    /// It has to be polled again by this time.
    By(Timestamp),
    /// It was passed because it wasn't polled.
    Absent,
    /// One of its keys is retired.
    Retired,
}

impl QueuedRequest {
    /// Admits a new request if no request waits and its cost fits; otherwise adds it to a queue.
    pub(super) fn arrive(request: &mut Request, waker: &Waker) -> Arrival {
        request.resolve_standing();
        loop {
            let entries = match request.entries() {
                Ok(entries) => entries,
                Err(refused) => return Arrival::Ended(Err(AcquireError::Refused(refused))),
            };
            let Some(mut scopes) = request.lock(&entries) else { continue };
            let arrived_at = scopes.now();
            request.set_arrival_time(arrived_at);
            let mut asked = None;
            let turn = request.turn(request.arrival.unwrap_or(NEW));
            let scope = match request.judge(&scopes, turn, None) {
                Verdict::Admit => {
                    let reservations = scopes.commit(&request.cost, true);
                    scopes.end_long_waits();
                    scopes.iter_mut().for_each(|scope| request.charge_turn(turn, scope));
                    drop(scopes);
                    let permit = request.grant(reservations, None, arrived_at, arrived_at);
                    return Arrival::Ended(Ok(permit));
                }
                Verdict::Fail(error) => return Arrival::Ended(Err(error)),
                Verdict::Wait(blocker) => blocker.queue,
                Verdict::Ask => {
                    let reservation = request.reservation(&scopes, None);
                    let reservations = scopes.commit(&reservation.cost, false);
                    drop(scopes);
                    if let Some(Ok(())) = request.core().reserve_here(&reservation) {
                        let permit =
                            request.grant(reservations, Some(reservation), arrived_at, arrived_at);
                        return Arrival::Ended(Ok(permit));
                    }
                    scopes = Scopes::lock(&entries);
                    scopes.take_back(&reservation.cost, arrived_at);
                    asked = Some(reservation);
                    0
                }
            };
            let place = match QueuePlace::enter(request, &mut scopes, scope, waker) {
                Ok(place) => place,
                Err(error) => return Arrival::Ended(Err(error)),
            };
            drop(scopes);
            return Arrival::Queued(Self { entries, place, arrived_at, asked: Asked::new(asked) });
        }
    }

    /// Admits the request if its turn has come and its cost fits. Ends it if waiting cannot succeed.
    pub(super) fn check(&mut self, request: &mut Request, waker: &Waker) -> Progress {
        let Some(mut scopes) = request.lock(&self.entries) else {
            self.place.leave(&mut Scopes::lock(&self.entries));
            request.arrival = Some(self.place.turn.arrival());
            return Progress::Retired;
        };
        let (now, mut reservations) = (scopes.now(), None);
        let mut blocker = None;
        let Self { place, asked, .. } = self;
        place.return_to_queue(request, &mut scopes, waker);
        let mut progress = match place.judge(request, &mut scopes, waker) {
            Verdict::Admit => {
                reservations = Some(scopes.commit(&request.cost, true));
                None
            }
            Verdict::Fail(error) => Some(Progress::Ended(Err(error))),
            Verdict::Wait(by) => match place.late_error(request, &scopes) {
                Some(error) => Some(Progress::Ended(Err(error))),
                None => {
                    blocker = Some(by);
                    Some(Progress::Wait(place.due(request, &scopes)))
                }
            },
            Verdict::Ask => Some(match asked.ask(place, request, &mut scopes, waker) {
                Attempted::Asks(question) => Progress::Ask(question),
                Attempted::Waits(until) => {
                    blocker = asked.blocker(place);
                    Progress::Wait(until)
                }
                Attempted::Failed(error) => Progress::Ended(Err(error)),
            }),
        };
        let mut long_wait = None;
        match &mut progress {
            None => place.leave_granted(request, &mut scopes),
            Some(Progress::Ended(_)) => place.leave(&mut scopes),
            Some(Progress::Wait(until)) => {
                place.update_wakers(&mut scopes, waker);
                if request.core().is_local() {
                    request.listen_for_shortage(place, &mut scopes, waker);
                }
                let noted = blocker.map(|by| place.note_wait(request, by, &mut scopes));
                let (long, long_at) = noted.unwrap_or_default();
                long_wait = long;
                let quota_ends = request.next_quota_deadline(&scopes);
                let cost = Some(&request.cost).filter(|_| request.core().is_local());
                let others = [long_at, place.on_polled(cost, &mut scopes), quota_ends];
                *until = until.iter().copied().chain(others.into_iter().flatten()).min();
            }
            Some(_) => place.update_wakers(&mut scopes, waker),
        }
        drop(scopes);
        long_wait.iter().for_each(|refused| long_wait::log(refused, request.core()));
        let grant = |reservations| {
            Progress::Ended(Ok(request.grant(reservations, None, self.arrived_at, now)))
        };
        reservations
            .map(grant)
            .or(progress)
            .expect("the request is admitted, or has other progress")
    }

    /// Notes that the backend was called, so that the next request may ask. `give_back` is called if the request is
    /// absent. Returns whether it still asks.
    pub(super) fn on_asked(&self, give_back: Waker) -> bool {
        self.place.on_asked(&mut Scopes::lock(&self.entries), give_back)
    }

    /// Asks for another reservation next, since the last one was given back.
    pub(super) fn forget_reservation(&mut self) {
        self.asked = Asked::new(None);
    }

    /// Continues with the answer of a backend. Returns `None` if it is a grant that has to wait, until
    /// `until` at the latest, for the answers to requests that asked before.
    pub(super) fn handle_answer(
        &mut self,
        request: &mut Request,
        answer: Result<(), ReserveError>,
        until: Timestamp,
        waker: &Waker,
    ) -> Option<Progress> {
        let mut scopes = Scopes::lock(&self.entries);
        let error = match answer {
            Err(error) => error,
            Ok(()) => match self.place.standing(&mut scopes, waker) {
                Standing::Early if scopes.now() < until => return None,
                Standing::Absent => {
                    drop(scopes);
                    // It may have been admitted after it was given back.
                    self.asked.release(request);
                    self.forget_reservation();
                    return Some(CHECK_AGAIN);
                }
                // Under the same lock, so that nobody gives the grant back.
                Standing::Next | Standing::Early if scopes.are_open() => {
                    let (reservation, now) = (self.asked.reservation.take(), scopes.now());
                    let cost = reservation.as_ref().map_or(&request.cost, |asked| &asked.cost);
                    let reservations = scopes.commit(cost, false);
                    self.place.leave_granted(request, &mut scopes);
                    drop(scopes);
                    let permit = request.grant(reservations, reservation, self.arrived_at, now);
                    return Some(Progress::Ended(Ok(permit)));
                }
                Standing::Next | Standing::Early | Standing::Passing => {
                    self.place.on_refused(request, &mut scopes);
                    drop(scopes);
                    self.asked.release(request);
                    self.forget_reservation();
                    return Some(CHECK_AGAIN);
                }
            },
        };
        let error = self.asked.on_refused(error, request, &scopes);
        if let Some(error) =
            request.wait_error(&scopes, Blocker::at_backend(self.place.scope, error))
        {
            self.place.leave(&mut scopes);
            drop(scopes);
            // The request isn't repeated, so that other processes needn't wait behind it.
            self.asked.release(request);
            return Some(Progress::Ended(Err(error)));
        }
        self.place.on_refused(request, &mut scopes);
        drop(scopes);
        Some(CHECK_AGAIN)
    }

    /// Notes that the request was polled while it asks.
    pub(super) fn on_polled(&self) -> Polled {
        let mut scopes = Scopes::lock(&self.entries);
        if scopes.is_retired() {
            return Polled::Retired;
        }
        if !self.place.is_asking(&scopes) {
            return Polled::Absent;
        }
        Polled::By(self.place.on_polled(None, &mut scopes).unwrap_or(Timestamp::MAX))
    }

    /// Returns its arrival number.
    pub(super) fn arrival(&self) -> u64 {
        self.place.turn.arrival()
    }

    /// Returns the error of a request that cannot wait any longer for an answer that was due at `until`.
    pub(super) fn overdue(&self, request: &Request, until: Timestamp) -> Option<AcquireError> {
        if request.core().is_closed() {
            return Some(AcquireError::Closed);
        }
        let scopes = Scopes::lock(&self.entries);
        if scopes.now() < until {
            return None;
        }
        let denial = Denial::Elsewhere(Wait::Unknown);
        // No key is known to be short, so that no quota's bound counts.
        request.deadline_error(&scopes, Blocker::at(self.place.scope, denial))
    }

    /// Leaves its queues, and wakes the next request of each.
    pub(super) fn leave(&mut self) {
        self.place.leave(&mut Scopes::lock(&self.entries));
    }
}

/// The arrival number of a new request, which goes behind every request that waits.
const NEW: u64 = u64::MAX;

/// The progress of a request that has to check its keys again immediately.
pub(super) const CHECK_AGAIN: Progress = Progress::Wait(Some(Timestamp::UNIX_EPOCH));
