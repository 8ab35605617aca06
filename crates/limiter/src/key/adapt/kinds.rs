use std::sync::Arc;
use std::time::Duration;

use super::refusals::{Concerns, Refusals};
use super::{Adapt, KeyPace, Reaction};
use crate::answer::stats::Outage;
use crate::event::{Fault, RateLimited};
use crate::key::denial::Denial;
use crate::key::limits::Limits;
use crate::quota::Cost;
use crate::refusal::{Refusal, RefusalKind};
use crate::timestamp::Timestamp;

/// The reaction to a refusal, by its kind.
impl Adapt {
    /// Reacts to a refusal. Requests of a known `cost` test the limits of a key that adapts.
    pub(crate) fn on_refusal(
        &mut self,
        limits: &mut Limits,
        refused: &RateLimited,
        cost: Option<&Cost>,
        key_pace: KeyPace,
        now: Timestamp,
    ) -> Reaction {
        let RateLimited { ref refusal, sent_at, fault, .. } = *refused;
        let sent_at = sent_at.unwrap_or(now);
        let refusals = self.refusals.get_or_insert_default();
        refusals.note(now);
        let circuit = &mut refusals.circuit;
        let mut reaction = Reaction::default();
        match refusal.kind {
            RefusalKind::Rate | RefusalKind::Window => {
                let before = self.cooling_until;
                let is_window = |adapt: &Self| {
                    let until = adapt.cooling_until;
                    until > now && adapt.cool_down_kind(until) == Some(RefusalKind::Window)
                };
                let was_window = is_window(self);
                let reaction = self.on_limit(limits, refused, cost, key_pace, now);
                let until = self.cooling_until;
                if until != before {
                    let refusals = self.refusals.get_or_insert_default();
                    refusals.started_cool_down(until, refusal.kind);
                }
                let is_stopped = !was_window && is_window(self);
                let kind = self.cool_down_kind(until);
                return Reaction { kind, is_stopped, ..reaction };
            }
            RefusalKind::Capacity => {
                let pause = circuit.failed(refused, sent_at, now);
                reaction.is_stopped = pause.as_ref().is_some_and(|pause| pause.is_new);
                // Other programs are told what the provider says.
                reaction.until = pause.filter(|_| fault.is_none()).map(|pause| pause.until);
                reaction.kind = Some(refusal.kind);
            }
            // A client may have sent a wrong key of its own.
            RefusalKind::Account if refusal.status == Some(401) => {}
            RefusalKind::Account => {
                reaction.is_stopped = circuit.refused_account(refused, sent_at, now);
            }
            RefusalKind::Request => {}
        }
        // A request that was never sent is taken back at its end.
        if fault != Some(Fault::Unreachable) {
            self.set_aside(sent_at, cost);
        }
        reaction
    }

    /// Reacts to a refusal for a rate or a used-up window.
    fn on_limit(
        &mut self,
        limits: &mut Limits,
        refused: &RateLimited,
        cost: Option<&Cost>,
        key_pace: KeyPace,
        now: Timestamp,
    ) -> Reaction {
        let concerns = self.refusals.get_or_insert_default().concerns(refused, cost, now);
        if concerns != Concerns::Key {
            self.set_aside(refused.sent_at.unwrap_or(now), cost);
            if concerns == Concerns::RequestSoFar {
                self.cooling_until = self.cooling_until.max(now + REPEATED);
            }
            return Reaction::default();
        }
        let pace = key_pace.pace.filter(|pace| pace.is_adaptive);
        match (pace, cost) {
            (Some(pace), Some(cost)) if refused.refusal.kind == RefusalKind::Rate => {
                self.on_refused(limits, refused, cost, pace.probes_retry_after, now)
            }
            _ => {
                self.set_aside(refused.sent_at.unwrap_or(now), cost);
                self.refuse(limits, refused, key_pace, now)
            }
        }
    }

    /// Returns whether a request has to wait alone before it is sent again: its refusal doesn't hold back the key.
    pub(crate) fn waits_alone(&self, request: u64, now: Timestamp) -> bool {
        let is_alone = |refusals: &Refusals| refusals.is_alone(request);
        self.cooling_until <= now || self.refusals.as_deref().is_some_and(is_alone)
    }

    /// Returns whether answers are reported to the key.
    pub(crate) fn has_refusals(&self) -> bool {
        self.refusals.is_some()
    }

    /// Returns why no request is sent at this time, whatever its cost.
    pub(crate) fn check_refusals(&self, at: Timestamp) -> Result<(), Denial> {
        self.refusals.as_ref().map_or(Ok(()), |refusals| refusals.check(at))
    }

    /// Returns the kind of the refusal that started the cool-down that ends at this time, if it is known.
    pub(crate) fn cool_down_kind(&self, until: Timestamp) -> Option<RefusalKind> {
        self.refusals.as_ref()?.cool_down_kind(until)
    }

    /// Returns the outage of the server, if there is one.
    pub(crate) fn outage(&self) -> Option<Outage> {
        self.refusals.as_ref()?.circuit.outage()
    }

    /// Returns the provider's refusal of the account, with which waiting requests are answered.
    pub(crate) fn account_refusal(&self) -> Option<&Arc<Refusal>> {
        self.refusals.as_ref()?.account()
    }
}

/// The pause of a key whose only request was refused again.
const REPEATED: Duration = Duration::from_secs(1);
