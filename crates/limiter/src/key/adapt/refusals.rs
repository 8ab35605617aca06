use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::circuit::Circuit;
use crate::event::RateLimited;
use crate::key::denial::Denial;
use crate::quota::Cost;
use crate::refusal::{Refusal, RefusalKind};
use crate::timestamp::Timestamp;

/// The refusals of a key, by the requests that were refused: one request never stops a key.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    pub(super) circuit: Circuit,
    /// The last refusal for a limit that concerned the key.
    last: Option<RefusedRequest>,
    /// The last refusal for a limit that concerns the key only if another request is refused too.
    unconfirmed: Option<(RefusedRequest, Cost)>,
    /// The time at which the latest accepted request was sent.
    accepted: Timestamp,
    /// Requests whose last refusal concerned them alone.
    alone: SmallVec<[u64; 2]>,
    /// The time of the last refusal.
    at: Timestamp,
    /// The end of the last cool-down that a refusal caused, and its kind.
    cooling: Option<(Timestamp, RefusalKind)>,
}

#[derive(Debug, Clone, Copy)]
struct RefusedRequest {
    /// `None` if a program reported the refusal by hand.
    request: Option<u64>,
    at: Timestamp,
}

/// Whose requests a refusal for a limit concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concerns {
    /// The requests of the key.
    Key,
    /// The refused one: others are accepted, or its delay contradicts the limit and no other request confirms it.
    Request,
    /// The refused one, as far as is known: no other request was sent since its last refusal.
    RequestSoFar,
}

impl Refusals {
    /// Returns whether nothing follows from these refusals any more.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        let is_cooling = self.cooling.is_some_and(|(until, _)| until > now);
        self.circuit.is_closed() && now - self.at > REMEMBERED_FOR && !is_cooling
    }

    pub(super) fn check(&self, at: Timestamp) -> Result<(), Denial> {
        self.circuit.check(at)
    }

    pub(super) fn account(&self) -> Option<&Arc<Refusal>> {
        self.circuit.account()
    }

    /// Counts an accepted request.
    pub(super) fn accepted(&mut self, sent_at: Timestamp, now: Timestamp) {
        self.accepted = self.accepted.max(sent_at);
        self.circuit.accepted(sent_at, now);
    }

    /// Notes the time of a refusal.
    pub(super) fn note(&mut self, now: Timestamp) {
        self.at = now;
    }

    /// Returns whom a refusal for a rate or a window concerns.
    pub(super) fn concerns(
        &mut self,
        refused: &RateLimited,
        cost: Option<&Cost>,
        now: Timestamp,
    ) -> Concerns {
        let RateLimited { ref refusal, request, .. } = *refused;
        let concerns = if request.is_some() && needs_confirmation(refusal) {
            self.confirm(RefusedRequest { request, at: now }, cost)
        } else {
            self.repeat(RefusedRequest { request, at: now })
        };
        self.alone.retain(|alone| Some(*alone) != request);
        if let (Some(request @ 1..), false) = (request, concerns == Concerns::Key) {
            if self.alone.len() >= MAX_ALONE {
                self.alone.remove(0);
            }
            self.alone.push(request);
        }
        concerns
    }

    /// Returns whether the last refusal of a request concerned it alone.
    pub(super) fn is_alone(&self, request: u64) -> bool {
        self.alone.contains(&request)
    }

    /// A request that is refused again, and no other one in between, shows nothing about others.
    fn repeat(&mut self, new: RefusedRequest) -> Concerns {
        match self.last {
            Some(last) if last.is_same(new) && self.accepted > last.at => Concerns::Request,
            Some(last) if last.is_same(new) => Concerns::RequestSoFar,
            _ => {
                self.last = Some(new);
                Concerns::Key
            }
        }
    }

    /// A refusal is confirmed by that of another request. Without numbers, that is one of another size, since a client
    /// may have repeated the request by itself.
    fn confirm(&mut self, new: RefusedRequest, cost: Option<&Cost>) -> Concerns {
        let cost = cost.cloned().unwrap_or_default();
        match &self.unconfirmed {
            Some((last, size)) if self.accepted <= last.at => {
                let has_numbers =
                    [last.request, new.request].iter().all(|n| n.is_some_and(|n| n != 0));
                if last.is_same(new) || !has_numbers && *size == cost {
                    return Concerns::Request;
                }
                self.last = Some(new);
                Concerns::Key
            }
            _ => {
                self.unconfirmed = Some((new, cost));
                Concerns::Request
            }
        }
    }

    /// Notes that a refusal of this kind started a cool-down.
    pub(super) fn started_cool_down(&mut self, until: Timestamp, kind: RefusalKind) {
        self.cooling = Some((until, kind));
    }

    /// Returns the kind of the refusal that started a cool-down.
    pub(super) fn cool_down_kind(&self, until: Timestamp) -> Option<RefusalKind> {
        self.cooling.filter(|(end, _)| *end == until).map(|(_, kind)| kind)
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.circuit.rebase(back);
        let unconfirmed = self.unconfirmed.as_mut().map(|(refused, _)| &mut refused.at);
        let last = self.last.as_mut().map(|refused| &mut refused.at);
        let cooling = self.cooling.as_mut().map(|(until, _)| until);
        let times = [&mut self.accepted, &mut self.at].into_iter().chain(unconfirmed).chain(last);
        let times = times.chain(cooling);
        times.for_each(|time| *time = time.saturating_sub(back));
    }
}

impl RefusedRequest {
    fn is_same(self, other: Self) -> bool {
        self.request == other.request && self.request.is_some_and(|request| request != 0)
    }
}

/// Returns whether a refusal concerns the key only if another request is refused too: its delay contradicts the limit,
/// or something of the limit is left for smaller requests.
fn needs_confirmation(refusal: &Refusal) -> bool {
    let has_left = refusal.used.zip(refusal.limit).is_some_and(|(used, limit)| used < limit);
    match refusal.kind {
        RefusalKind::Rate => refusal.delay.is_some_and(|delay| delay > LONGEST_OF_RATE),
        RefusalKind::Window => has_left,
        _ => false,
    }
}

/// The longest delay that a limit per minute explains, with a margin for penalties.
pub const LONGEST_OF_RATE: Duration = Duration::from_secs(600);

/// The time for which refusals are remembered.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);

const MAX_ALONE: usize = 64;
