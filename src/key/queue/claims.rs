use std::time::Duration;

use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// The claim that a gate leaves at a key when its turn has come: for a short time, other requests are
/// admitted only if the cost of the gate's next request still fits after them.
///
/// A key has one claim at most. Claims that end without a call block others for at most 5 % of the
/// time: beyond that, gates open without a claim.
#[derive(Debug)]
pub(crate) struct Claims {
    claim: Option<Claim>,
    /// The time for which claims without a call may block others, as of `at`.
    allowance: Duration,
    at: Timestamp,
}

#[derive(Debug)]
struct Claim {
    arrival: u64,
    cost: Cost,
    since: Timestamp,
    until: Timestamp,
}

impl Claims {
    /// Leaves a claim for the gate with this number of arrival, unless too many have ended without a call.
    pub(crate) fn leave(&mut self, arrival: u64, cost: Cost, now: Timestamp) {
        let refilled = now.saturating_duration_since(self.at) / REFILL_PART;
        (self.allowance, self.at) = ((self.allowance + refilled).min(ALLOWANCE), now);
        if self.claim.is_none() && self.allowance >= CLAIM_TIME {
            self.claim = Some(Claim { arrival, cost, since: now, until: now + CLAIM_TIME });
        }
    }

    /// Ends the claim of a gate, with or without a call. Returns whether there was one.
    pub(crate) fn end(&mut self, arrival: u64, is_called: bool, now: Timestamp) -> bool {
        let ended = self.claim.take_if(|claim| claim.arrival == arrival);
        if let Some(claim) = ended.as_ref().filter(|_| !is_called) {
            let blocked = now.saturating_duration_since(claim.since);
            self.allowance = self.allowance.saturating_sub(blocked);
        }
        ended.is_some()
    }

    /// Ends a claim whose time is over. Returns whether there was one.
    pub(crate) fn lapse(&mut self, now: Timestamp) -> bool {
        let has_lapsed = self.claim.take_if(|claim| claim.until <= now).is_some();
        if has_lapsed {
            self.allowance = self.allowance.saturating_sub(CLAIM_TIME);
        }
        has_lapsed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.claim.is_none()
    }

    /// Returns whether the claim is that of the gate with this arrival number.
    pub(crate) fn has(&self, arrival: u64) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.arrival == arrival)
    }

    /// Returns when the claim lapses.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        self.claim.as_ref().map(|claim| claim.until)
    }

    /// Returns the amount that a request has to leave, and until when; a request of the gate itself
    /// has none to leave.
    pub(crate) fn of_others(&self, arrival: u64) -> Option<(&Cost, Timestamp)> {
        let claim = self.claim.as_ref().filter(|claim| claim.arrival != arrival)?;
        Some((&claim.cost, claim.until))
    }

    /// Moves all times back, after the clock was set back by this much.
    pub(crate) fn rebase(&mut self, back: Duration) {
        self.at = self.at.saturating_sub(back);
        if let Some(claim) = &mut self.claim {
            claim.since = claim.since.saturating_sub(back);
            claim.until = claim.until.saturating_sub(back);
        }
    }
}

impl Default for Claims {
    fn default() -> Self {
        Self { claim: None, allowance: ALLOWANCE, at: Timestamp::UNIX_EPOCH }
    }
}

/// The time that a claim lasts: a service that is ready is called within microseconds, unless its
/// caller has forgotten it.
const CLAIM_TIME: Duration = Duration::from_millis(50);

/// The time that claims without a call may block others in a row; it refills by one part of `REFILL_PART`.
const ALLOWANCE: Duration = Duration::from_millis(150);
const REFILL_PART: u32 = 20;
