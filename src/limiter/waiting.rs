use std::sync::Arc;
use std::task::Waker;

use super::permit::Permit;
use super::request::{Request, Verdict};
use super::scopes::{Blocked, Entries, Scopes};
use crate::answer::error::AcquireError;
use crate::backend::{Ending, Reservation, ReserveError};
use crate::engine::Wait;
use crate::key::denial::Denial;
use crate::key::queue::Turn;
use crate::timestamp::Timestamp;

/// A request in a queue.
pub(super) struct Waiting {
    entries: Entries,
    seat: Seat,
    arrived_at: Timestamp,
    reservation: Option<Arc<Reservation>>,
    /// The number of changes at its keys when a backend was asked last.
    changes: u64,
}

/// The place of a request in the queue of the key that blocks it.
///
/// A request has one number of arrival. When its turn has come, its key has room and another is
/// short, it moves to the queue of that one, to the place that its number is due: so it delays no
/// request of a key that isn't short. Two keys that never have room at the same moment could move it
/// back and forth for ever; so a request that has moved as often as it has keys, and waits for one,
/// keeps its places at the keys that are named before it. Those are the narrower ones, a tenant's
/// before its model's: a tenant that is short delays no other tenant.
#[derive(Debug)]
struct Seat {
    turn: Turn,
    /// The key in whose queue it waits.
    at: usize,
    moves: usize,
}

/// The result of an arrival.
pub(super) enum Arrival {
    Ended(Result<Permit, AcquireError>),
    Queued(Waiting),
}

/// The result of a look at the keys while waiting.
pub(super) enum Look {
    Ended(Result<Permit, AcquireError>),
    /// To be looked at again when woken, or at this time.
    Wait(Option<Timestamp>),
    Ask(Arc<Reservation>),
    /// A key is retired: the request has to arrive again, with its number.
    Retired,
}

impl Waiting {
    /// Admits a newcomer if no request waits and its cost fits; else gives it its place in the queue.
    pub(super) fn arrive(request: &mut Request, waker: &Waker) -> Arrival {
        loop {
            let entries = match request.entries() {
                Ok(entries) => entries,
                Err(refused) => return Arrival::Ended(Err(AcquireError::Refused(refused))),
            };
            let Some(mut scopes) = request.lock(&entries) else { continue };
            let arrived_at = scopes.now();
            request.be_patient(arrived_at);
            let mut reservation = None;
            let at = match request.judge(&scopes, NEWCOMER) {
                Verdict::Admit => {
                    let taken = scopes.commit(&request.cost);
                    drop(scopes);
                    let permit = request.granted(taken, None, (arrived_at, arrived_at));
                    return Arrival::Ended(Ok(permit));
                }
                Verdict::Fail(error) => return Arrival::Ended(Err(error)),
                Verdict::Wait(blocked) => blocked.queue,
                // Only the first in the queue asks elsewhere.
                Verdict::Ask => {
                    let asked = request.reservation(&scopes, None);
                    let parts = scopes.parts();
                    drop(scopes);
                    if let Some(Ok(())) = request.core().reserve_here(&asked) {
                        let times = (arrived_at, arrived_at);
                        return Arrival::Ended(Ok(request.granted(
                            (parts, true),
                            Some(asked),
                            times,
                        )));
                    }
                    reservation = Some(asked);
                    scopes = Scopes::lock(&entries);
                    0
                }
            };
            let seat = match Seat::take(request, &mut scopes, at, waker) {
                Ok(seat) => seat,
                Err(error) => return Arrival::Ended(Err(error)),
            };
            drop(scopes);
            return Arrival::Queued(Self { entries, seat, arrived_at, reservation, changes: 0 });
        }
    }

    /// Admits the request if its turn has come and its cost fits; ends it if waiting on cannot succeed.
    pub(super) fn look(&mut self, request: &mut Request, waker: &Waker) -> Look {
        let Self { entries, seat, arrived_at, reservation, changes } = self;
        let Some(mut scopes) = request.lock(entries) else {
            seat.leave(&mut Scopes::lock(entries));
            request.arrival = Some(seat.turn.arrival());
            return Look::Retired;
        };
        let (now, mut taken) = (scopes.now(), None);
        let look = match seat.judge(request, &mut scopes, waker) {
            Verdict::Admit => {
                taken = Some(scopes.commit(&request.cost));
                None
            }
            Verdict::Fail(error) => Some(Look::Ended(Err(error))),
            Verdict::Wait(_) => Some(Look::Wait(seat.due(request, &scopes))),
            Verdict::Ask => {
                seat.listen(&mut scopes, waker);
                *changes = scopes.changes();
                let asked = request.reservation(&scopes, reservation.take());
                *reservation = Some(Arc::clone(&asked));
                Some(Look::Ask(asked))
            }
        };
        match &look {
            None | Some(Look::Ended(_)) => seat.leave(&mut scopes),
            Some(_) => seat.stay(&mut scopes, waker),
        }
        drop(scopes);
        let granted = |taken| Look::Ended(Ok(request.granted(taken, None, (*arrived_at, now))));
        taken.map(granted).or(look).expect("taken, or there is another answer")
    }

    /// Goes on with the answer of a backend.
    pub(super) fn answered(
        &mut self,
        request: &mut Request,
        asked: Arc<Reservation>,
        answer: Result<(), ReserveError>,
    ) -> Look {
        let Err(error) = answer else { return self.granted(request, asked) };
        let Self { entries, seat, .. } = &*self;
        let scopes = Scopes::lock(entries);
        let changed = scopes.changes() != self.changes;
        // The answer may be out of date already.
        let error = if changed { ReserveError::Full(Wait::Unknown) } else { error };
        let hopeless = request.hopeless(&scopes, Blocked::elsewhere(seat.at, error));
        drop(scopes);
        match hopeless {
            Some(error) => {
                self.leave();
                // It isn't asked for again: other processes needn't wait behind it.
                if let Some(backend) = &request.core().backend {
                    backend.end(&asked, Ending::Released);
                }
                Look::Ended(Err(error))
            }
            None if changed => Look::Wait(Some(Timestamp::UNIX_EPOCH)),
            None => Look::Wait(if let Wait::At(time) = error.wait() { Some(time) } else { None }),
        }
    }

    fn granted(&mut self, request: &mut Request, asked: Arc<Reservation>) -> Look {
        let scopes = Scopes::lock(&self.entries);
        let (parts, now) = (scopes.parts(), scopes.now());
        drop(scopes);
        self.leave();
        Look::Ended(Ok(request.granted((parts, true), Some(asked), (self.arrived_at, now))))
    }

    /// Returns whether one of its keys counts elsewhere by now.
    pub(super) fn is_retired(&self) -> bool {
        Scopes::lock(&self.entries).is_retired()
    }

    /// Returns its number of arrival.
    pub(super) fn arrival(&self) -> u64 {
        self.seat.turn.arrival()
    }

    /// Returns the error of a request whose answer, which was due by `until`, comes too late for it.
    pub(super) fn overdue(&self, request: &Request, until: Timestamp) -> Option<AcquireError> {
        if request.core().is_closed() {
            return Some(AcquireError::Closed);
        }
        let scopes = Scopes::lock(&self.entries);
        if scopes.now() < until {
            return None;
        }
        request.hopeless(&scopes, Blocked::at(self.seat.at, Denial::Elsewhere(Wait::Unknown)))
    }

    /// Gives its places up, and wakes the next.
    pub(super) fn leave(&mut self) {
        self.seat.leave(&mut Scopes::lock(&self.entries));
    }
}

impl Seat {
    fn take(
        request: &mut Request,
        scopes: &mut Scopes<'_>,
        at: usize,
        waker: &Waker,
    ) -> Result<Self, AcquireError> {
        let arrival = request.arrival.take();
        let (core, scope) = (request.core(), scopes.get_mut(at));
        let waiting = scope.waiting();
        // A request that asks a backend is the first in the queue for as long as that takes.
        let most = request.max_waiting.unwrap_or_else(|| core.max_waiting());
        if waiting >= most.max(usize::from(!core.is_local())) {
            return Err(AcquireError::QueueFull { key: scope.key().clone(), waiting });
        }
        let turn = Turn::request(arrival.unwrap_or_else(|| core.arrival()));
        scope.enter(turn, waker);
        Ok(Self { turn, at, moves: 0 })
    }

    fn judge(&mut self, request: &Request, scopes: &mut Scopes<'_>, waker: &Waker) -> Verdict {
        let scope = scopes.get(self.at);
        if scope.is_quota_removed(self.turn.arrival()) && request.default().is_none() {
            return Verdict::Fail(AcquireError::Removed { key: scope.key().clone() });
        }
        let verdict = request.judge(scopes, self.turn);
        if let Verdict::Wait(Blocked { queue, .. }) = verdict
            && queue != self.at
            && self.is_first(scopes)
            && self.denial(request, scopes).is_none()
        {
            self.move_to(queue, scopes, waker);
        }
        verdict
    }

    fn is_first(&self, scopes: &Scopes<'_>) -> bool {
        scopes.get(self.at).queue().is_some_and(|queue| queue.is_first(self.turn))
    }

    fn move_to(&mut self, to: usize, scopes: &mut Scopes<'_>, waker: &Waker) {
        let all = scopes.len();
        let keeps = |scope: usize| scope < to && self.moves >= all;
        for scope in (0..all).filter(|&scope| scope != to && !keeps(scope)) {
            scopes.get_mut(scope).leave(self.turn);
        }
        scopes.get_mut(to).enter(self.turn, waker);
        (self.at, self.moves) = (to, self.moves + 1);
    }

    /// Returns when to look again without being woken: only the first has a time.
    fn due(&self, request: &Request, scopes: &Scopes<'_>) -> Option<Timestamp> {
        let denial = self.denial(request, scopes).filter(|_| self.is_first(scopes))?;
        match denial.wait() {
            Wait::At(time) => Some(time),
            // Requests in flight may end sooner; if not, the key may have recovered enough.
            Wait::Unknown => scopes.get(self.at).recovers_at(),
            Wait::Never => None,
        }
    }

    /// Returns why the key that it waits for has no room.
    fn denial(&self, request: &Request, scopes: &Scopes<'_>) -> Option<Denial> {
        scopes.denial(self.at, &request.cost, scopes.now(), request.core().is_local())
    }

    /// Listens at its other keys: a backend doesn't say which key is short.
    fn listen(&self, scopes: &mut Scopes<'_>, waker: &Waker) {
        for scope in (0..scopes.len()).filter(|&scope| scope != self.at) {
            scopes.get_mut(scope).listen(self.turn, waker);
        }
    }

    fn stay(&self, scopes: &mut Scopes<'_>, waker: &Waker) {
        scopes.iter_mut().for_each(|scope| scope.stay(self.turn, waker));
    }

    fn leave(&self, scopes: &mut Scopes<'_>) {
        scopes.iter_mut().for_each(|scope| scope.leave(self.turn));
    }
}

/// Behind every request that has drawn a number.
pub(super) const NEWCOMER: Turn = Turn::request(u64::MAX);
