use std::time::Duration;

use smallvec::SmallVec;

use super::feedback::Feedback;
use super::key_state::KeyState;
use super::secrets;
use crate::event::{Event, RateLimited};
use crate::key::adapt::Adapt;
use crate::key::limits::Limits;
use crate::quota::Cost;
use crate::quota::{Limit, Window};
use crate::refusal::{Refusal, RefusalKind};
use crate::timestamp::Timestamp;

/// A cool-down that may be taken back: its end, and the end of the one that it replaced.
#[derive(Debug, Clone, Copy)]
pub struct Hold {
    before: Timestamp,
    until: Timestamp,
}

/// What the layer reports of refusals.
impl Feedback<'_> {
    /// Stops requests of a key for `delay`, or until the reason of its refusal is known. Returns
    /// `None` if the key already cools down for that long, or is refused as unknown.
    pub(crate) fn hold(&self, key: &str, delay: Duration) -> Option<Hold> {
        let held = self.with(key, |state| {
            let until = state.now() + delay;
            let before = state.cooling_until();
            (before < until).then(|| {
                state.adapt(|adapt, _, _| adapt.move_cool_down(before, until));
                Hold { before, until }
            })
        });
        held.flatten()
    }

    /// Ends a hold, for a refusal that waiting doesn't resolve.
    pub(crate) fn release_hold(&self, key: &str, hold: Hold) {
        self.with(key, |state| {
            state.adapt(|adapt, _, _| adapt.move_cool_down(hold.until, hold.before));
        });
    }

    /// Reports a refusal as [`rate_limited`](Self::rate_limited) does, in place of a hold: no request
    /// is sent in between. The refusal of a request of a known cost tests the limits.
    pub(crate) fn refused(
        &self,
        hold: Option<Hold>,
        key: &str,
        refused: &RateLimited,
        cost: Option<&Cost>,
    ) {
        self.refuse(key, hold, refused, cost);
        self.adopt(key, &refused.refusal);
    }

    /// Returns whether a request has to wait alone before it is sent again, since its refusal holds back no other one.
    pub(crate) fn waits_alone(&self, key: &str, request: u64) -> bool {
        self.with(key, |state| state.waits_alone(request)).unwrap_or(true)
    }

    /// Returns a number for a request that may be sent several times.
    pub(crate) fn request_number(&self) -> u64 {
        self.shared.core.next_arrival()
    }

    /// Learns the limit that the refusal of a request states which is larger than that, beside the others of the key, as
    /// [`learn`](Self::learn) does.
    fn adopt(&self, key: &str, refusal: &Refusal) {
        let Refusal { kind: RefusalKind::Request, dimension: Some(dimension), .. } = refusal else {
            return;
        };
        let window = refusal.window.and_then(|window| Window::new(window).ok());
        let (Some(amount), Some(window)) = (refusal.limit, window) else { return };
        let Some(new) = Limit::new(dimension.clone(), amount, window) else { return };
        let limits = |_: &_, state: &KeyState| {
            state.full_plan().rules.iter().map(|rule| rule.limit().clone()).collect()
        };
        let mut limits: SmallVec<[Limit; 4]> =
            self.shared.table.peek(key, limits).unwrap_or_default();
        let is_same =
            |known: &&mut Limit| known.dimension() == dimension && known.window() == window;
        match limits.iter_mut().find(is_same) {
            Some(known) if known.amount() <= amount => return,
            Some(known) => *known = new,
            None => limits.push(new),
        }
        self.adopt_limits(key, &limits);
    }
}

impl Feedback<'_> {
    /// Applies a refusal, and reports the reaction.
    pub(super) fn refuse(
        &self,
        key: &str,
        hold: Option<Hold>,
        refused: &RateLimited,
        cost: Option<&Cost>,
    ) {
        let key_pace = self.key_pace(key);
        let react = |adapt: &mut Adapt, limits: &mut Limits, now: Timestamp| {
            if let Some(Hold { before, until }) = hold {
                adapt.move_cool_down(until, before);
            }
            adapt.on_refusal(limits, refused, cost, key_pace, now)
        };
        let reacted = self.with(key, |state| {
            let reaction = state.adapt_and_record(react);
            (state.key().clone(), state.capacity(), reaction)
        });
        let Some((state_key, capacity, reaction)) = reacted else { return };
        if reaction.is_stopped {
            self.log_refusal(key, &refused.refusal, reaction.until);
        }
        if let Some(until) = reaction.until {
            let kind = reaction.kind;
            let event = || Event::CoolingDown { key: key.into(), until, kind, agent: None };
            self.shared.core.events.announce(event);
        }
        if reaction.is_reduced {
            self.report_reduced(state_key, capacity, "refused by the provider", None);
        } else if !reaction.learned.is_empty() {
            let pace = *self.shared.core.reduction.read();
            let capacity = pace.filter(|_| capacity > 0).map_or(0, |pace| pace.reduce(capacity));
            let limits = reaction.learned;
            let event = || Event::LimitsLearned { key: state_key, limits, capacity };
            self.shared.core.events.announce(event);
        }
    }

    /// Logs a refusal that stops a key for long. Its target isn't the limiter's, which servers turn off.
    #[cold]
    fn log_refusal(&self, key: &str, refusal: &Refusal, until: Option<Timestamp>) {
        let core = &self.shared.core;
        let name = core.logged_name(key);
        let (key, reason, status) = (name.as_str(), secrets::masked(&refusal.text), refusal.status);
        let pause_s = until.map(|until| (until - core.clock.now()).as_secs_f64());
        let what = match refusal.kind {
            RefusalKind::Account => "the provider refuses the account",
            RefusalKind::Window => RefusalKind::Window.describe(),
            _ => "requests fail one after the other; testing the server with one at a time",
        };
        tracing::warn!(target: "paceline::refusals", key, status, reason, pause_s, "{what}");
    }
}
