use std::sync::Arc;
use std::task::Waker;

use super::backend::{Ending, Reservation, Unmet};
use super::error::AcquireError;
use super::line::Wakers;
use super::permit::Permit;
use super::request::{NEWCOMER, Request, Verdict};
use super::scopes::{Blocked, Places, Scopes};
use super::slot::{Denial, Slot};
use crate::engine::Wait;

/// A request in a queue.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Pinned while it waits.
    places: Places,
    seat: Seat,
    arrived: u64,
    reservation: Option<Arc<Reservation>>,
    /// How often its keys had changed when a backend was asked last.
    changes: u64,
}

/// A place in the queue of the key that holds a request up.
///
/// A request has one number of arrival. When its turn has come, its key has room and another is
/// short, it goes to that one's queue, to the place that is due to its number: so it keeps nobody
/// from a key that isn't short. Two keys that are never free at the same moment could send it to and
/// fro for ever; so who has been sent on as often as it has keys, and waits for one, keeps its places
/// at those named before it. Those are the narrower ones, a tenant's before its model's: nobody else
/// is kept waiting by a tenant that is short.
#[derive(Debug)]
struct Seat {
    number: u64,
    /// The key in whose queue it waits.
    at: usize,
    moves: usize,
}

/// What became of a newcomer.
pub(super) enum Arrival {
    Ended(Result<Permit, AcquireError>),
    Queued(Waiting),
}

/// What a look at the queue came to.
pub(super) enum Turn {
    Ended(Result<Permit, AcquireError>),
    /// To be looked at again when woken, or at this time.
    Wait(Option<u64>),
    Ask(Arc<Reservation>),
    /// A key counts elsewhere by now: to arrive there, with the number that it has.
    Moved,
}

impl Waiting {
    /// Lets a newcomer in if nobody waits and it fits; else gives it its place in the queue.
    pub(super) fn arrive(request: &mut Request, waker: &Waker) -> Arrival {
        loop {
            let (places, _pins) = match request.places() {
                Ok(there) => there,
                Err(refused) => return Arrival::Ended(Err(AcquireError::Refused(refused))),
            };
            let Some(mut scopes) = Scopes::lock(&places) else { continue };
            request.give(&mut scopes);
            let arrived = scopes.now;
            request.be_patient(&scopes);
            let mut reservation = None;
            let at = match request.judge(&scopes, NEWCOMER) {
                Verdict::Admit => {
                    let taken = scopes.commit(&places, &request.cost);
                    drop(scopes);
                    return Arrival::Ended(Ok(request.granted(taken, None, (arrived, arrived))));
                }
                Verdict::Fail(error) => return Arrival::Ended(Err(error)),
                Verdict::Wait(blocked) => blocked.queue,
                // Only the first in the queue asks elsewhere.
                Verdict::Ask => {
                    let asked = request.reservation(&scopes, None);
                    let parts = scopes.parts(&places);
                    scopes.pin();
                    drop(scopes);
                    if let Some(Ok(())) = request.core().ask_here(&asked) {
                        let permit =
                            request.granted((parts, true), Some(asked), (arrived, arrived));
                        return Arrival::Ended(Ok(permit));
                    }
                    reservation = Some(asked);
                    scopes = Scopes::lock(&places).expect(PINNED);
                    scopes.for_each(|slot, _| slot.unpin());
                    0
                }
            };
            let seat = match Seat::take(request, &mut scopes, at, waker) {
                Ok(seat) => seat,
                Err(error) => return Arrival::Ended(Err(error)),
            };
            drop(scopes);
            return Arrival::Queued(Self { places, seat, arrived, reservation, changes: 0 });
        }
    }

    /// Lets it in if its turn has come and it fits; ends it if waiting on would be in vain.
    pub(super) fn look(&mut self, request: &mut Request, waker: &Waker) -> Turn {
        let Self { places, seat, arrived, reservation, changes } = self;
        let mut wakers = Wakers::default();
        let mut scopes = Scopes::lock(places).expect(PINNED);
        request.give(&mut scopes);
        if scopes.all().any(Slot::is_moved) {
            seat.leave(&mut scopes, &mut wakers);
            drop(scopes);
            wakers.ring();
            request.number = Some(seat.number);
            return Turn::Moved;
        }
        let (now, mut taken) = (scopes.now, None);
        let turn = match seat.judge(request, &mut scopes, (waker, &mut wakers)) {
            Verdict::Admit => {
                taken = Some(scopes.commit(places, &request.cost));
                None
            }
            Verdict::Fail(error) => Some(Turn::Ended(Err(error))),
            Verdict::Wait(_) => Some(Turn::Wait(seat.due(request, &mut scopes))),
            Verdict::Ask => {
                seat.listen(&mut scopes, waker);
                *changes = scopes.changes();
                let asked = request.reservation(&scopes, reservation.take());
                *reservation = Some(Arc::clone(&asked));
                Some(Turn::Ask(asked))
            }
        };
        match &turn {
            None | Some(Turn::Ended(_)) => seat.leave(&mut scopes, &mut wakers),
            Some(_) => seat.stay(&mut scopes, waker, &mut wakers),
        }
        drop(scopes);
        wakers.ring();
        let granted = |taken| Turn::Ended(Ok(request.granted(taken, None, (*arrived, now))));
        taken.map(granted).or(turn).expect("taken, or there is another answer")
    }

    /// What a backend has answered.
    pub(super) fn answered(
        &mut self,
        request: &mut Request,
        asked: Arc<Reservation>,
        answer: Result<(), Unmet>,
    ) -> Turn {
        let Err(unmet) = answer else { return self.granted(request, asked) };
        let Self { places, seat, .. } = &*self;
        let scopes = Scopes::lock(places).expect(PINNED);
        let changed = scopes.changes() != self.changes;
        // The answer may be out of date already.
        let unmet = if changed { Unmet::Full(Wait::Unknown) } else { unmet };
        let hopeless = request.hopeless(&scopes, Blocked::elsewhere(seat.at, unmet));
        drop(scopes);
        match hopeless {
            Some(error) => {
                self.leave();
                // It doesn't come again: others needn't stand behind it.
                if let Some(backend) = &request.core().backend {
                    backend.end(&asked, Ending::Released);
                }
                Turn::Ended(Err(error))
            }
            None if changed => Turn::Wait(Some(0)),
            None => Turn::Wait(if let Wait::At(time) = unmet.wait() { Some(time) } else { None }),
        }
    }

    fn granted(&mut self, request: &mut Request, asked: Arc<Reservation>) -> Turn {
        let mut scopes = Scopes::lock(&self.places).expect(PINNED);
        scopes.pin();
        let (parts, now) = (scopes.parts(&self.places), scopes.now);
        drop(scopes);
        self.leave();
        Turn::Ended(Ok(request.granted((parts, true), Some(asked), (self.arrived, now))))
    }

    /// Why an answer needn't be waited for any more, which was due by `until`.
    pub(super) fn overdue(&self, request: &Request, until: u64) -> Option<AcquireError> {
        if request.core().is_closed() {
            return Some(AcquireError::Closed);
        }
        let scopes = Scopes::lock(&self.places).expect(PINNED);
        if scopes.now < until {
            return None;
        }
        let denial = Denial::Elsewhere(Wait::Unknown);
        request.hopeless(&scopes, Blocked::at(self.seat.at, denial))
    }

    /// Gives its places up, and hands on.
    pub(super) fn leave(&mut self) {
        let mut wakers = Wakers::default();
        let mut scopes = Scopes::lock(&self.places).expect(PINNED);
        self.seat.leave(&mut scopes, &mut wakers);
        drop(scopes);
        wakers.ring();
    }
}

impl Seat {
    fn take(
        request: &mut Request,
        scopes: &mut Scopes<'_>,
        at: usize,
        waker: &Waker,
    ) -> Result<Self, AcquireError> {
        let number = request.number.take();
        let (slot, core) = (scopes.slot_mut(at), request.core());
        let waiting = slot.waiting();
        // Whoever asks a backend stands first in the queue for as long as that takes.
        let most = request.max_waiting.unwrap_or_else(|| core.max_waiting());
        if waiting >= most.max(usize::from(core.backend.is_some())) {
            return Err(AcquireError::QueueFull { key: slot.key.clone(), waiting });
        }
        let number = number.unwrap_or_else(|| core.arrival());
        slot.line().queue.enter(number, waker);
        scopes.pin();
        Ok(Self { number, at, moves: 0 })
    }

    fn judge(
        &mut self,
        request: &Request,
        scopes: &mut Scopes<'_>,
        (waker, wakers): (&Waker, &mut Wakers),
    ) -> Verdict {
        let slot = scopes.slot(self.at);
        if slot.is_ousted(self.number) && request.default().is_none() {
            return Verdict::Fail(AcquireError::Removed { key: slot.key.clone() });
        }
        let verdict = request.judge(scopes, self.number);
        if let Verdict::Wait(Blocked { queue, .. }) = verdict
            && queue != self.at
            && self.is_first(scopes)
            && self.denial(request, scopes).is_none()
        {
            self.go_to(queue, scopes, (waker, wakers));
        }
        verdict
    }

    fn is_first(&self, scopes: &mut Scopes<'_>) -> bool {
        scopes.slot_mut(self.at).there().is_some_and(|line| line.queue.is_first(self.number))
    }

    fn go_to(
        &mut self,
        to: usize,
        scopes: &mut Scopes<'_>,
        (waker, wakers): (&Waker, &mut Wakers),
    ) {
        let (now, all) = (scopes.now, scopes.all().count());
        let keeps = |scope: usize| scope < to && self.moves >= all;
        for scope in (0..all).filter(|&scope| scope != to && !keeps(scope)) {
            scopes.slot_mut(scope).leave_queue(self.number, now, wakers);
        }
        scopes.slot_mut(to).line().queue.enter(self.number, waker);
        (self.at, self.moves) = (to, self.moves + 1);
    }

    /// When to look again without being woken: only the first has a time.
    fn due(&self, request: &Request, scopes: &mut Scopes<'_>) -> Option<u64> {
        let denial = self.denial(request, scopes).filter(|_| self.is_first(scopes))?;
        match denial.wait() {
            Wait::At(time) => Some(time),
            // Others may end sooner; if not, it may have recovered enough.
            Wait::Unknown => scopes.slot(self.at).recovers_at(),
            Wait::Never => None,
        }
    }

    /// Why the key that it waits for has no room.
    fn denial(&self, request: &Request, scopes: &Scopes<'_>) -> Option<Denial> {
        let here = request.core().backend.is_none();
        scopes.denial(self.at, &request.cost, scopes.now, here)
    }

    /// A backend doesn't say which key is short: it hears of changes of all of them.
    fn listen(&self, scopes: &mut Scopes<'_>, waker: &Waker) {
        for scope in (0..scopes.all().count()).filter(|&scope| scope != self.at) {
            scopes.slot_mut(scope).line().asking.enter(self.number, waker);
        }
    }

    fn stay(&self, scopes: &mut Scopes<'_>, waker: &Waker, wakers: &mut Wakers) {
        scopes.for_each(|slot, _| {
            let Some(line) = slot.there() else { return };
            for row in [&mut line.queue, &mut line.asking] {
                wakers.drop_later(row.set_waker(self.number, waker));
            }
        });
    }

    fn leave(&self, scopes: &mut Scopes<'_>, wakers: &mut Wakers) {
        scopes.for_each(|slot, now| {
            slot.leave_queue(self.number, now, wakers);
            slot.unpin();
        });
    }
}

const PINNED: &str = "a key isn't forgotten while somebody waits for it";
