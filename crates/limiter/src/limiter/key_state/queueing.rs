use std::sync::Arc;
use std::task::Waker;

use super::KeyState;
use crate::engine::{Bucket, Rule, Wait};
use crate::key::adapt::Adapt;
use crate::key::denial::Denial;
use crate::key::queue::{Absent, Amounts, Claimed, GateTerms, Left, Service, Turn, WaitQueue};
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// Waiting requests and gates.
impl KeyState {
    /// Returns the number of requests that wait, in the queue or for the answer of a backend.
    pub(crate) fn waiting(&self) -> usize {
        let waiting = |queue: &WaitQueue| queue.requests() + queue.asking().len();
        self.extra.as_ref().map_or(0, |extra| waiting(&extra.queue))
    }

    /// Returns the queue, if there is one.
    pub(crate) fn queue(&self) -> Option<&WaitQueue> {
        self.extra.as_ref().map(|extra| &extra.queue)
    }

    /// Removes a waiter or a request that asks, and a listener with its arrival number. Wakes the next
    /// waiters if the removed one came before them.
    pub(crate) fn leave(&mut self, turn: Turn) {
        let now = self.now();
        self.end_asking(turn, false);
        self.finish(turn, |queue| queue.remove(turn, now));
    }

    /// Removes a waiter or a request that asks and is admitted, and charges its flow. Wakes the next waiters
    /// if the removed one came before them, or if it is another flow's turn now.
    pub(crate) fn leave_granted(&mut self, turn: Turn, service: Service) {
        let now = self.now();
        if self.asking().is_some_and(|asking| asking.contains(turn)) {
            self.charge_turn(turn, service);
            self.end_asking(turn, true);
        }
        self.finish(turn, |queue| queue.grant(turn, service, now));
    }

    fn finish(&mut self, turn: Turn, remove: impl FnOnce(&mut WaitQueue) -> Option<Left>) {
        let now = self.now();
        let Some(extra) = &mut self.extra else { return };
        if let Some(removed) = remove(&mut extra.queue) {
            extra.wakers.drop_later(Some(removed.waker));
            if removed.was_next {
                self.skip_absent();
                let extra = self.extra_mut();
                extra.wakers.wake(extra.queue.next(now));
            }
        }
        let extra = self.extra_mut();
        extra.wakers.drop_later(extra.queue.stop_listening(turn.arrival()));
        self.stop_listening_for_shortage(turn);
    }

    /// Removes absent waiters, so that the others don't wait behind them. Returns whether there were any.
    fn skip_absent(&mut self) -> bool {
        let now = self.now();
        let Some(extra) = self.extra.as_mut().filter(|extra| extra.queue.has_absent()) else {
            return false;
        };
        let Absent { spent, due } = extra.queue.remove_absent(now);
        extra.wakers.wake(due);
        spent.into_iter().for_each(|waker| extra.wakers.drop_later(Some(waker)));
        true
    }

    /// Notes that a waiter of this cost was polled, or a request that asks a backend, which knows whether it fits.
    /// Returns the time by which it has to be polled again, unless nobody could wait behind it.
    pub(crate) fn on_polled(&mut self, turn: Turn, cost: Option<&Cost>) -> Option<Timestamp> {
        let now = self.now();
        let not_before = cost.map_or(now, |cost| self.not_before(cost));
        let extra = self.extra.as_mut()?;
        let polls_by = extra.queue.on_polled(turn, not_before, now);
        if extra.queue.is_disturbed(now) {
            extra.wakers.wake(extra.queue.next(now));
        }
        self.pass_absent();
        polls_by
    }

    /// Returns a time before which the limits can't admit this cost, even if all that is held came back: now if it
    /// would be soon, or if the key may become faster by itself.
    #[cold]
    fn not_before(&self, cost: &Cost) -> Timestamp {
        let now = self.now();
        let grows = |adapt: &Adapt| adapt.is_reduced() || adapt.check_pace(cost, now).is_err();
        let Some(extra) = self.extra.as_ref().filter(|extra| !grows(&extra.adapt)) else {
            return now;
        };
        let soon = extra.queue.soon(now);
        match self.check_limits(cost, now).map_err(Denial::wait) {
            Err(Wait::At(time)) if time <= soon => return now,
            Err(Wait::At(_) | Wait::Unknown) => {}
            _ => return now,
        }
        match self.check_limits_of(&self.limits_without_holds(), cost, now).map_err(Denial::wait) {
            Err(Wait::At(time)) => time,
            _ => now,
        }
    }

    /// Removes absent waiters, and lets the next ones go.
    fn pass_absent(&mut self) {
        if self.queue().is_some_and(WaitQueue::has_absent) {
            self.open_next_gates();
        }
    }

    /// Notes that a waiter is being polled, and removes those before it that are absent.
    pub(crate) fn note_poll(&mut self, turn: Turn) {
        let now = self.now();
        if let Some(extra) = &mut self.extra {
            extra.queue.note_poll(turn, now);
            self.pass_absent();
        }
    }

    /// Notes that a waiter arrives: wakes one that was alone, and removes those that are absent. With `wakes_quiet`,
    /// waiters that aren't polled for a while are polled too.
    pub(crate) fn on_arrival(&mut self, wakes_quiet: bool) {
        let now = self.now();
        let Some(extra) = &mut self.extra else { return };
        if extra.queue.on_arrival(now) || wakes_quiet && extra.queue.is_quiet(now) {
            extra.wakers.wake(extra.queue.next(now));
        }
        self.pass_absent();
    }

    /// Notes that a request that doesn't wait was refused because others wait: they may have been forgotten.
    pub(crate) fn on_try(&mut self) {
        let now = self.now();
        let Some(extra) = &mut self.extra else { return };
        if extra.queue.on_try(now) {
            extra.wakers.wake(extra.queue.next(now));
        }
        self.pass_absent();
    }

    /// Inserts a request at the position of its turn, or replaces its waker if it already waits.
    pub(crate) fn enter(&mut self, turn: Turn, service: Service, waker: &Waker) {
        self.insert(turn, service, None, waker);
    }

    /// Inserts a gate at the position of its turn, or replaces its waker and its terms if it already waits.
    pub(crate) fn enter_gate(
        &mut self,
        turn: Turn,
        service: Service,
        terms: GateTerms,
        waker: &Waker,
    ) {
        self.insert(turn, service, Some(terms), waker);
    }

    fn insert(&mut self, turn: Turn, service: Service, gate: Option<GateTerms>, waker: &Waker) {
        let now = self.now();
        if !self.queue().is_some_and(|queue| queue.contains(turn)) {
            self.on_arrival(false);
        }
        let extra = self.extra_mut();
        extra.wakers.drop_later(extra.queue.set_waker(turn, waker));
        if extra.queue.enter(turn, service, gate, waker, now) {
            extra.wakers.wake(extra.queue.next(now));
        }
    }

    /// Charges the flow of a request that is admitted without waiting here, if others wait. Wakes the next waiter if that is of
    /// another flow.
    pub(crate) fn charge_turn(&mut self, turn: Turn, service: Service) {
        let now = self.now();
        if let Some(extra) = &mut self.extra
            && extra.queue.charge(turn, service, now)
        {
            extra.wakers.wake(extra.queue.next(now));
        }
    }

    /// Opens the gates whose turn has come: each leaves the queue, and may leave a claim. Absent waiters leave
    /// the queue too. Returns whether the next waiters were woken.
    #[inline]
    pub(crate) fn open_gates(&mut self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.has_queue_work()) && self.open_next_gates()
    }

    fn open_next_gates(&mut self) -> bool {
        let now = self.now();
        let has_lapsed = self.extra_mut().claims.lapse(now);
        let mut has_opened = self.skip_absent();
        while let Some((turn, terms)) = self.next_gate()
            && self.check_gate(turn, terms).is_none()
        {
            let terms = terms.clone();
            let extra = self.extra_mut();
            if let Some(removed) = extra.queue.remove(turn, now) {
                extra.wakers.wake([removed.waker]);
            }
            if terms.leaves_claim {
                extra.claims.leave(turn.arrival(), terms.cost, now);
            }
            self.skip_absent();
            has_opened = true;
        }
        if has_lapsed || has_opened {
            let extra = self.extra_mut();
            extra.wakers.wake(extra.queue.next(now));
        }
        has_lapsed || has_opened
    }

    /// Returns the gate that is the head, unless it has to wait for the end of another gate's claim.
    fn next_gate(&self) -> Option<(Turn, &GateTerms)> {
        let extra = self
            .extra
            .as_ref()
            .filter(|extra| extra.claims.until().is_none() && !extra.is_retired)?;
        extra.queue.head_gate()
    }

    /// Returns the wait of the gate that is the head. A gate whose request can never be admitted opens, since
    /// the request itself gets the error.
    fn check_gate(&self, turn: Turn, terms: &GateTerms) -> Option<Wait> {
        match self.check_limits(&terms.cost, self.now()) {
            Ok(()) => self.check_claims(turn, &terms.cost).map(Denial::wait),
            Err(denial) => Some(denial.wait()).filter(|wait| *wait != Wait::Never),
        }
    }

    /// Returns the time at which the gate at the head opens or a claim lapses, if it is known: now, if those before the
    /// gate have just left.
    pub(crate) fn gates_due(&self) -> Option<Timestamp> {
        if let Some(until) = self.extra.as_ref()?.claims.until() {
            return Some(until);
        }
        let (turn, terms) = self.next_gate()?;
        match self.check_gate(turn, terms) {
            None => Some(self.now()),
            Some(Wait::At(time)) => Some(time),
            Some(_) => self.recovers_at(),
        }
    }

    /// Ends the claim of the gate with this arrival number, whose service was called or dropped.
    pub(crate) fn end_claim(&mut self, arrival: u64, is_called: bool) {
        let now = self.now();
        let Some(extra) = &mut self.extra else { return };
        if extra.claims.end(arrival, is_called, now) {
            self.wake_next();
        }
    }

    /// Keeps the cost of a request free that waits in the queue of another key, unless a request that goes
    /// before it does so here. `None` is for the key in whose queue it waits.
    pub(crate) fn hold_claim(&mut self, turn: Turn, cost: Option<&Cost>) {
        let (plan, now) = (Arc::clone(self.plan()), self.now());
        let cost = cost.map(|cost| || plan.clip_guesses(cost).into_owned());
        if self.extra_mut().claims.hold(turn, cost, now) {
            self.wake_next();
        }
    }

    /// Ends the claim of a request, if it holds one.
    pub(crate) fn release_claim(&mut self, turn: Turn) {
        if self.extra.as_mut().is_some_and(|extra| extra.claims.release(turn)) {
            self.wake_next();
        }
    }

    /// Opens the gates whose turn has come, and wakes the next waiters.
    fn wake_next(&mut self) {
        if !self.open_gates() {
            let now = self.now();
            let extra = self.extra_mut();
            extra.wakers.wake(extra.queue.next(now));
        }
    }

    /// Returns a time after `deadline` before which the turn of a new request cannot come, unless requests before it
    /// give up. Those that are overdue for a poll don't count, since they may be passed. A reduced key recovers, and
    /// may then be faster.
    pub(crate) fn turn_after(
        &self,
        deadline: Timestamp,
        turn: Turn,
        cost: &Cost,
    ) -> Option<Timestamp> {
        let extra = self.extra.as_ref().filter(|extra| !extra.adapt.is_reduced())?;
        let now = self.now();
        let after = |mut amounts: Amounts<u128>| {
            for (sum, amount) in amounts.iter_mut().zip(cost.main_amounts()) {
                *sum += u128::from(amount);
            }
            Some(self.limits.earliest(amounts, now)).filter(|earliest| *earliest > deadline)
        };
        // Sums of a new one are known.
        if !extra.queue.contains(turn) {
            after(extra.queue.amounts_before(turn)?)?;
        }
        after(extra.queue.amounts_present(turn, now))
    }

    /// Returns why a request whose cost fits has to wait for others: for those whose turn comes before, or
    /// for a claim. A request that asks a backend and doesn't wait passes those that only wait for the
    /// answers to others.
    pub(crate) fn check_turn(
        &self,
        turn: Turn,
        is_queued_here: bool,
        passes_askers: bool,
        cost: &Cost,
    ) -> Option<Denial> {
        let extra = self.extra.as_ref()?;
        // The turn of a request with a claim has come at its gate.
        let is_behind = match is_queued_here {
            _ if passes_askers && !self.is_short() => false,
            true => !extra.queue.is_head(turn),
            false => extra.queue.is_behind(turn, self.now()),
        };
        if !extra.claims.has(turn.arrival()) && is_behind {
            return Some(Denial::OthersWaiting(Wait::Unknown));
        }
        self.check_claims(turn, cost)
    }

    /// Returns why a request whose cost fits has to wait for the claims of others.
    pub(crate) fn check_claims(&self, turn: Turn, cost: &Cost) -> Option<Denial> {
        let Claimed { cost: claimed, claims, until } =
            self.extra.as_ref()?.claims.of_others(turn)?;
        let claimed = if cost.is_money() { claimed.money() } else { claimed };
        let is_full = |(rule, bucket): (&Rule, &Bucket)| {
            *rule.dimension() == Dimension::Concurrency
                && !cost.is_money()
                && bucket.level(rule, self.now()).available <= claims
        };
        let fits_at =
            match self.check_limits(&self.plan().clip_guesses(cost).plus(&claimed), self.now()) {
                Ok(()) if !self.limits.iter().any(is_full) => return None,
                Err(denial) if let Wait::At(time) = denial.wait() => Some(time),
                _ => None,
            };
        let earliest = fits_at.into_iter().chain(until).min();
        Some(Denial::OthersWaiting(earliest.map_or(Wait::Unknown, Wait::At)))
    }

    /// Replaces the wakers of a waiter and of a listener, if they are in the queue.
    pub(crate) fn update_wakers(&mut self, turn: Turn, waker: &Waker) {
        if let Some(extra) = &mut self.extra {
            extra.wakers.drop_later(extra.queue.set_waker(turn, waker));
            let arrival = turn.arrival();
            extra.wakers.drop_later(extra.queue.set_listener_waker(arrival, waker));
        }
    }

    /// Adds a listener to changes, for a request in the queue of another key.
    pub(crate) fn listen(&mut self, turn: Turn, waker: &Waker) {
        self.extra_mut().queue.listen(turn.arrival(), waker);
    }

    /// Returns whether a request with this arrival number waits for a quota that was removed.
    pub(crate) fn is_quota_removed(&self, arrival: u64) -> bool {
        self.extra.as_ref().is_some_and(|extra| arrival <= extra.removed_at)
    }

    /// Counts a change and wakes the waiters that it concerns: the next one, and all listeners.
    pub(crate) fn notify_change(&mut self) {
        if self.extra.is_none() {
            return;
        }
        // Gates open here, and not when they are polled: one may be forgotten, and others wait behind it.
        let (now, has_opened) = (self.now(), self.open_gates());
        if let Some(extra) = &mut self.extra {
            extra.changes += 1;
            extra.wakers.wake(extra.queue.listener_wakers());
            if !has_opened {
                extra.wakers.wake(extra.queue.next(now));
            }
            if extra.waits.is_some() {
                self.wake_if_short();
            }
        }
    }

    /// Returns the number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        self.extra.as_ref().map_or(0, |extra| extra.changes)
    }

    /// Wakes all waiters.
    pub(crate) fn wake_all(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.wakers.wake(extra.queue.all_wakers());
        }
    }
}
