use std::sync::atomic::Ordering;
use std::task::Waker;

use super::ask_slot::AskSlot;
use super::core::is_new_arrival;
use super::long_wait;
use super::request::{Request, Verdict};
use super::scopes::{Blocker, Scopes};
use crate::answer::error::{AcquireError, Refused};
use crate::backend::Reservation;
use crate::engine::Wait;
use crate::key::denial::Denial;
use crate::key::queue::{Attempt, Standing, Turn, WaitQueue, poll_period};
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// The place of a request in the queue of the key that blocks it.
///
/// A request has one arrival number. If its key admits it when its turn comes, but another key is
/// short, the request moves to the queue of that key, to the position of its number. That way it holds
/// up no requests for keys that aren't short.
///
/// Two keys that never admit the request at the same time could move it back and forth for ever. So a
/// request that has moved more often than it has keys holds claims on the keys listed before the one that
/// blocks it: others pass there only if its cost still fits after them. Those are the narrower keys, such
/// as a tenant before its model: a tenant that is short delays no other tenant. A claim gives way to a
/// request with a higher priority or, at the same priority, an earlier arrival. The first request of this
/// order gets all its claims, so that no two requests wait for each other.
#[derive(Debug)]
pub(super) struct QueuePlace {
    pub(super) turn: Turn,
    /// The index of the key in whose queue the request waits.
    pub(super) scope: usize,
    moves: usize,
    /// The time for which it occupies that key's limits, as of its arrival there.
    unit: u64,
    /// The time by which those before it are known that are no longer polled, if it has a deadline and they weren't
    /// known at its arrival.
    judges_deadline_at: Option<Timestamp>,
}

impl QueuePlace {
    /// Enters the queue of a key.
    pub(super) fn enter(
        request: &mut Request,
        scopes: &mut Scopes<'_>,
        scope: usize,
        waker: &Waker,
    ) -> Result<Self, AcquireError> {
        let arrival = request.arrival.take();
        let core = request.core();
        let waiting =
            |scopes: &Scopes<'_>| scopes.get(scope).queue().map_or(0, WaitQueue::requests);
        let most = request.max_waiting.unwrap_or_else(|| core.max_waiting());
        // A request is in the queue for a moment before it asks a backend.
        let most = most.max(usize::from(!core.is_local()));
        if arrival.is_none_or(is_new_arrival) && waiting(scopes) >= most {
            let locked = scopes.get_mut(scope);
            locked.on_arrival(true);
            let key = locked.key().clone();
            let waiting = waiting(scopes);
            if waiting >= most {
                return Err(AcquireError::QueueFull { key, waiting });
            }
        }
        let turn = request.turn(arrival.unwrap_or_else(|| core.next_arrival()));
        if let Some(error) = request.late_error(scopes, scope, turn) {
            return Err(error);
        }
        let now = scopes.now();
        let locked = scopes.get_mut(scope);
        let has_deadline = request.deadline_at(locked).is_some();
        let is_quiet = has_deadline && locked.queue().is_some_and(|queue| queue.is_quiet(now));
        if is_quiet {
            locked.on_arrival(true);
        }
        let service = request.service(locked);
        locked.enter(turn, service, waker);
        let judges_deadline_at = is_quiet.then(|| now + poll_period(0, 0));
        Ok(Self { turn, scope, moves: 0, unit: service.unit, judges_deadline_at })
    }

    /// Returns the error of a request that can't be granted by its deadline, once it is known who waits before it.
    pub(super) fn late_error(
        &mut self,
        request: &Request,
        scopes: &Scopes<'_>,
    ) -> Option<AcquireError> {
        self.judges_deadline_at.take_if(|at| *at <= scopes.now())?;
        request.late_error(scopes, self.scope, self.turn)
    }

    /// Returns the request to its queue, if it has left that because it wasn't polled for too long. Those before it leave
    /// that aren't polled.
    pub(super) fn return_to_queue(
        &self,
        request: &Request,
        scopes: &mut Scopes<'_>,
        waker: &Waker,
    ) {
        let locked = scopes.get_mut(self.scope);
        if !locked.queue().is_some_and(|queue| queue.contains(self.turn)) {
            let service = request.service(locked);
            locked.enter(self.turn, service, waker);
        }
        scopes.get_mut(self.scope).note_poll(self.turn);
    }

    /// Notes that the request was polled. Returns the time by which it has to be polled again, since others may
    /// wait behind it. `cost` is what has to fit, unless a backend decides.
    pub(super) fn on_polled(
        &self,
        cost: Option<&Cost>,
        scopes: &mut Scopes<'_>,
    ) -> Option<Timestamp> {
        let locked = scopes.get_mut(self.scope);
        let part = cost.map(|cost| locked.part(cost));
        let polls_by = locked.on_polled(self.turn, part.as_deref());
        let confirms_by = self.holds_claims(scopes).then(|| scopes.now() + poll_period(0, 0));
        polls_by.into_iter().chain(confirms_by).min()
    }

    /// Judges the request at its turn. Moves it to the queue of another key if only that one is short.
    pub(super) fn judge(
        &mut self,
        request: &Request,
        scopes: &mut Scopes<'_>,
        waker: &Waker,
    ) -> Verdict {
        let locked = scopes.get(self.scope);
        if locked.is_quota_removed(self.turn.arrival()) && request.default_plan().is_none() {
            return Verdict::Fail(AcquireError::Removed { key: locked.key().clone() });
        }
        loop {
            let verdict = request.judge(scopes, self.turn, Some(self.scope));
            let Verdict::Wait(Blocker { queue, .. }) = verdict else { return verdict };
            if queue != self.scope && self.is_turn(request, scopes) {
                self.move_to(queue, request, scopes, waker);
                // Those before it there may have left, since nobody polls them.
                if self.is_turn(request, scopes) {
                    continue;
                }
            }
            self.hold_claims(request, scopes);
            return verdict;
        }
    }

    /// Returns whether the key in whose queue it waits admits the request now.
    fn is_turn(&self, request: &Request, scopes: &Scopes<'_>) -> bool {
        self.is_head(scopes) && self.denial(request, scopes).is_none()
    }

    fn is_head(&self, scopes: &Scopes<'_>) -> bool {
        scopes.get(self.scope).queue().is_some_and(|queue| queue.is_head(self.turn))
    }

    fn move_to(&mut self, to: usize, request: &Request, scopes: &mut Scopes<'_>, waker: &Waker) {
        for scope in (0..scopes.len()).filter(|&scope| scope != to) {
            scopes.get_mut(scope).leave(self.turn);
        }
        let locked = scopes.get_mut(to);
        let service = request.service(locked);
        locked.enter(self.turn, service, waker);
        (self.scope, self.moves, self.unit) = (to, self.moves + 1, service.unit);
        for scope in to + 1..scopes.len() {
            scopes.get_mut(scope).release_claim(self.turn);
        }
    }

    /// Holds a claim on each key before the one that blocks the request, if it has moved too often.
    fn hold_claims(&self, request: &Request, scopes: &mut Scopes<'_>) {
        if self.holds_claims(scopes) && request.core().is_local() {
            for scope in 0..=self.scope {
                let locked = scopes.get_mut(scope);
                let cost = (scope != self.scope).then(|| locked.part(&request.cost));
                locked.hold_claim(self.turn, cost.as_deref());
            }
        }
    }

    fn holds_claims(&self, scopes: &Scopes<'_>) -> bool {
        self.moves > scopes.len()
    }

    /// Notes that the request waits, since this key blocks it. Returns the refusal to log if it waits long, and the
    /// time at which it will, if it is the first of its queue.
    pub(super) fn note_wait(
        &self,
        request: &Request,
        blocker: Blocker,
        scopes: &mut Scopes<'_>,
    ) -> (Option<Refused>, Option<Timestamp>) {
        let (since, key) = (request.arrived_at, scopes.get_mut(self.scope));
        let is_first = key.queue().and_then(WaitQueue::first_request) == Some(self.turn);
        if is_first {
            key.set_next_at(self.turn, blocker.denial.fits_at());
        }
        let key = scopes.get_mut(blocker.scope);
        let long = long_wait::note(key, blocker.denial, &request.cost, since, is_first);
        (long, long_wait::due(key, since).filter(|_| is_first))
    }

    /// Returns the time at which the request has to check its keys again without being woken. Only the
    /// first request of a queue has one: it also looks after gates before it, which may be no longer polled.
    pub(super) fn due(&self, request: &Request, scopes: &Scopes<'_>) -> Option<Timestamp> {
        let locked = scopes.get(self.scope);
        if locked.queue()?.first_request() != Some(self.turn) {
            return None;
        }
        let denial = self.denial(request, scopes).filter(|_| self.is_head(scopes));
        let own = match denial.map(Denial::wait) {
            Some(Wait::At(time)) => Some(time),
            // Requests in flight may end sooner. If not, the key may have recovered enough by then.
            Some(Wait::Unknown) => locked.recovers_at(),
            Some(Wait::Never) | None => None,
        };
        own.into_iter().chain(locked.gates_due()).min()
    }

    /// Returns the reason why the key in whose queue it waits doesn't admit the request at its turn.
    fn denial(&self, request: &Request, scopes: &Scopes<'_>) -> Option<Denial> {
        let (cost, locked) = (&request.cost, scopes.get(self.scope));
        scopes
            .denial(self.scope, cost, scopes.now(), request.core().is_local())
            .or_else(|| locked.check_claims(self.turn, &locked.part(cost)))
    }

    /// Moves the request from its queue to those that ask the backend, if it may ask now. Returns the slot
    /// that it needs, if it isn't the first to ask, and whether it keeps its turn if it is refused.
    pub(super) fn ask(
        &self,
        request: &Request,
        scopes: &mut Scopes<'_>,
        reservation: &Reservation,
        is_first_attempt: bool,
        waker: &Waker,
    ) -> Option<(Option<AskSlot>, bool)> {
        let (core, can_wait) = (request.core(), request.can_wait(scopes.now()));
        let (is_head, locked) = (self.is_head(scopes), scopes.get_mut(self.scope));
        let asking = locked.asking()?;
        let (is_in_turn, is_idle) = (is_head && asking.admits(), asking.is_idle());
        let slot = match can_wait && is_in_turn && is_idle {
            true => None,
            false => AskSlot::take(core, reservation),
        };
        let is_out_of_turn = !can_wait && slot.is_some();
        if !is_out_of_turn && !(is_in_turn && (is_idle || slot.is_some())) {
            return None;
        }
        if let Some(queue) = locked.queue() {
            let priority = queue.priority_at_turn(self.turn).level();
            reservation.precedence.priority.store(priority, Ordering::Relaxed);
        }
        let attempt = Attempt { is_in_turn: !is_out_of_turn, is_first: is_first_attempt };
        locked.ask(self.turn, attempt, waker);
        Some((slot, can_wait && is_idle))
    }

    /// Notes that the backend was called, so that the next request may ask. `give_back` is called if the request is
    /// absent. Returns whether it still asks.
    pub(super) fn on_asked(&self, scopes: &mut Scopes<'_>, give_back: Waker) -> bool {
        scopes.get_mut(self.scope).on_asked(self.turn, give_back)
    }

    /// Returns whether the request asks the backend.
    pub(super) fn is_asking(&self, scopes: &Scopes<'_>) -> bool {
        let asking = scopes.get(self.scope).asking();
        asking.is_some_and(|asking| asking.contains(self.turn))
    }

    /// Returns whether the request may use the grant of the backend.
    pub(super) fn standing(&self, scopes: &mut Scopes<'_>, waker: &Waker) -> Standing {
        scopes.get_mut(self.scope).standing(self.turn, waker)
    }

    /// Returns to the queue after a refusal of the backend.
    pub(super) fn on_refused(&self, request: &Request, scopes: &mut Scopes<'_>) {
        let locked = scopes.get_mut(self.scope);
        let service = request.service(locked);
        locked.on_refused(self.turn, service);
    }

    /// Listens to its other keys, since a backend doesn't report which key is short.
    pub(super) fn listen(&self, scopes: &mut Scopes<'_>, waker: &Waker) {
        for scope in (0..scopes.len()).filter(|&scope| scope != self.scope) {
            scopes.get_mut(scope).listen(self.turn, waker);
        }
    }

    /// Replaces the wakers of the request in all queues.
    pub(super) fn update_wakers(&self, scopes: &mut Scopes<'_>, waker: &Waker) {
        scopes.iter_mut().for_each(|scope| scope.update_wakers(self.turn, waker));
    }

    /// Leaves all queues after the request was admitted: its flow is charged there. Ends the claims.
    pub(super) fn leave_granted(&self, request: &Request, scopes: &mut Scopes<'_>) {
        if !long_wait::is_long(request.arrived_at, scopes.now()) {
            scopes.end_long_waits();
        }
        for (at, scope) in scopes.iter_mut().enumerate() {
            if at == self.scope {
                let service = request.granted_service(scope, self.unit);
                scope.leave_granted(self.turn, service);
            } else {
                scope.leave(self.turn);
                request.charge_turn(self.turn, scope);
            }
            scope.release_claim(self.turn);
        }
    }

    /// Leaves all queues, and ends the claims.
    pub(super) fn leave(&self, scopes: &mut Scopes<'_>) {
        scopes.iter_mut().for_each(|scope| {
            scope.leave(self.turn);
            scope.release_claim(self.turn);
        });
    }
}
