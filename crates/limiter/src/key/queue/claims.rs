use std::time::Duration;

use super::turn::Turn;
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// Claims at a key: other requests are admitted only if the claimed cost still fits after them.
///
/// At most two claims of a key count. A gate whose turn has come leaves one, for a short time, for the call of
/// its service. Claims that end without a call block others for at most 5 % of the time: beyond that,
/// gates open without a claim. Requests under several keys that wait in the queue of another key hold claims,
/// of which the first one counts, by priority and arrival. It binds only requests that don't go before its own.
/// The others are kept: if a later request could claim first when it ends, requests could wait for each other's
/// claims in a circle.
#[derive(Debug)]
pub(crate) struct Claims {
    gate: Option<GateClaim>,
    /// In order of priority and arrival: the first one counts, the others follow when it ends.
    requests: Vec<RequestClaim>,
    /// A time before which no claim of a request ends by itself.
    lapses_at: Timestamp,
    /// The time for which gates' claims without a call may block others, as of `at`.
    allowance: Duration,
    at: Timestamp,
}

#[derive(Debug)]
struct GateClaim {
    arrival: u64,
    cost: Cost,
    since: Timestamp,
    until: Timestamp,
}

#[derive(Debug)]
struct RequestClaim {
    turn: Turn,
    /// `None` at the key in whose queue the request waits: it keeps out the claims of requests behind it,
    /// which could block those before it.
    cost: Option<Cost>,
    /// The time until which it counts: its request confirms it whenever it is polled.
    until: Timestamp,
}

/// The sum of the claims that a request has to leave.
#[derive(Debug, Clone)]
pub(crate) struct Claimed {
    pub(crate) cost: Cost,
    pub(crate) claims: u64,
    /// The time at which one of them lapses, if it does.
    pub(crate) until: Option<Timestamp>,
}

impl Claims {
    /// Leaves a claim for the gate with this number of arrival, unless too many have ended without a call.
    pub(crate) fn leave(&mut self, arrival: u64, cost: Cost, now: Timestamp) {
        let refilled = now.saturating_duration_since(self.at) / REFILL_PART;
        (self.allowance, self.at) = ((self.allowance + refilled).min(ALLOWANCE), now);
        if self.gate.is_none() && self.allowance >= CLAIM_TIME {
            self.gate = Some(GateClaim { arrival, cost, since: now, until: now + CLAIM_TIME });
        }
    }

    /// Ends the claim of a gate, with or without a call. Returns whether there was one.
    pub(crate) fn end(&mut self, arrival: u64, is_called: bool, now: Timestamp) -> bool {
        let ended = self.gate.take_if(|claim| claim.arrival == arrival);
        if let Some(claim) = ended.as_ref().filter(|_| !is_called) {
            let blocked = now.saturating_duration_since(claim.since);
            self.allowance = self.allowance.saturating_sub(blocked);
        }
        ended.is_some()
    }

    /// Ends a gate's claim whose time is over, and those of requests that are no longer polled. Returns whether
    /// there was one.
    pub(crate) fn lapse(&mut self, now: Timestamp) -> bool {
        let has_lapsed = self.gate.take_if(|claim| claim.until <= now).is_some();
        if has_lapsed {
            self.allowance = self.allowance.saturating_sub(CLAIM_TIME);
        }
        let held = self.requests.len();
        if self.lapses_at <= now {
            self.requests.retain(|claim| claim.until > now);
            let ends = self.requests.iter().map(|claim| claim.until);
            self.lapses_at = ends.min().unwrap_or(Timestamp::MAX);
        }
        has_lapsed || self.requests.len() < held
    }

    /// Holds a claim for a request, or confirms it, for [`CONFIRM_TIME`]. Returns whether it counts from now on in
    /// place of another one, which may have been its own with another cost.
    pub(crate) fn hold(
        &mut self,
        turn: Turn,
        cost: Option<impl FnOnce() -> Cost>,
        now: Timestamp,
    ) -> bool {
        let until = now + CONFIRM_TIME;
        self.lapses_at = self.lapses_at.min(until);
        let (is_claimed, has_cost) = (!self.requests.is_empty(), cost.is_some());
        let at = self.requests.partition_point(|claim| claim.turn.is_before(turn));
        match self.requests.get_mut(at).filter(|claim| claim.turn == turn) {
            Some(own) if own.cost.is_some() == has_cost => {
                own.until = until;
                return false;
            }
            Some(own) => (own.cost, own.until) = (cost.map(|cost| cost()), until),
            None => {
                let cost = cost.map(|cost| cost());
                self.requests.insert(at, RequestClaim { turn, cost, until });
            }
        }
        at == 0 && is_claimed
    }

    /// Ends the claim of a request. Returns whether it counted.
    pub(crate) fn release(&mut self, turn: Turn) -> bool {
        let at = self.requests.partition_point(|claim| claim.turn.is_before(turn));
        let is_held = self.requests.get(at).is_some_and(|claim| claim.turn == turn);
        if is_held {
            self.requests.remove(at);
        }
        is_held && at == 0
    }

    /// Ends the claims of requests, whose costs may be others after a change of the limits. They claim again at
    /// their next checks.
    pub(crate) fn release_requests(&mut self) {
        self.requests.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gate.is_none() && self.requests.is_empty()
    }

    /// Returns whether the gate with this arrival number has a claim.
    pub(crate) fn has(&self, arrival: u64) -> bool {
        self.gate.as_ref().is_some_and(|claim| claim.arrival == arrival)
    }

    /// Returns when the gate's claim lapses.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        self.gate.as_ref().map(|claim| claim.until)
    }

    /// Returns the claims that a request with this turn has to leave; its own is none of them.
    pub(crate) fn of_others(&self, turn: Turn) -> Option<Claimed> {
        let gate = self.gate.as_ref().filter(|claim| claim.arrival != turn.arrival);
        let request = self.requests.first().filter(|claim| claim.turn.is_before(turn));
        let lapses = [gate.map(|claim| claim.until), request.map(|claim| claim.until)];
        let until = lapses.into_iter().flatten().min();
        match (gate.map(|claim| &claim.cost), request.and_then(|claim| claim.cost.as_ref())) {
            (Some(gate), Some(request)) => {
                Some(Claimed { cost: gate.plus(request), claims: 2, until })
            }
            (Some(cost), None) | (None, Some(cost)) => {
                Some(Claimed { cost: cost.clone(), claims: 1, until })
            }
            (None, None) => None,
        }
    }

    /// Moves all times back, after the clock was set back by this much.
    pub(crate) fn rebase(&mut self, back: Duration) {
        self.at = self.at.saturating_sub(back);
        self.lapses_at = self.lapses_at.saturating_sub(back);
        if let Some(claim) = &mut self.gate {
            claim.since = claim.since.saturating_sub(back);
            claim.until = claim.until.saturating_sub(back);
        }
        for claim in &mut self.requests {
            claim.until = claim.until.saturating_sub(back);
        }
    }
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            gate: None,
            requests: Vec::new(),
            lapses_at: Timestamp::MAX,
            allowance: ALLOWANCE,
            at: Timestamp::UNIX_EPOCH,
        }
    }
}

/// The time that a gate's claim lasts: a service that is ready is called within microseconds, unless its
/// caller has forgotten it.
const CLAIM_TIME: Duration = Duration::from_millis(50);

/// The time for which a request's claim counts without a poll of the request. One that holds claims is polled after the
/// shortest [`poll_period`](super::poll_period), also while its queue is quiet.
const CONFIRM_TIME: Duration = Duration::from_millis(1_000);

/// The time that gates' claims without a call may block others in a row; it refills by one part of
/// `REFILL_PART`.
const ALLOWANCE: Duration = Duration::from_millis(150);
const REFILL_PART: u32 = 20;

#[cfg(test)]
mod tests;
