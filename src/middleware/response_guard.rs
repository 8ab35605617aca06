use std::fmt;
use std::sync::{Arc, Once};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use tracing::Span;

use super::classify::{Classified, MostTokens};
use super::cut_stream::CutStream;
use super::journey::Journey;
use super::late_cost::LateCost;
use super::record::{OTHER, Record};
use super::response_head::is_refusal;
use super::scope_key::{ScopeKey, ScopeKeys};
use super::server_failure::ServerFailure;
use crate::Timestamp;
use crate::limiter::{Limiter, Permit, RateLimited};
use crate::price::Price;
use crate::provider::{FailureCharge, Profile, Refusal, Scanned, Terms, seam as provider_seam};
use crate::quota::{Cost, Dimension, SettleAt, Usage};
use paceline_limiter::seam::{self, Hold, USD};

/// A guard of a request's reservation, from its admission to the end of its response. Dropping it releases
/// the reservation if the request was not sent, and settles it otherwise.
pub struct ResponseGuard {
    permit: Option<Permit>,
    /// Set once a response may outlive the service's future, which holds the limiter until then.
    limiter: Option<Limiter>,
    pub(super) keys: ScopeKeys,
    journey: Option<Journey>,
    record: Option<Box<Record>>,
    terms: Terms,
    /// The mode that the provider counts apart.
    mode: Option<&'static str>,
    /// The price of the request, if its spending is limited.
    price: Option<Arc<Price>>,
    most: MostTokens,
    /// The number of the request, the same for all its attempts; 0 if it has one attempt.
    number: u64,
    /// `true` if an earlier attempt has failed, other than by a refusal for a limit.
    has_failed: bool,
    waits_for_server: bool,
    /// `true` if the usage of the response is used to predict that of later requests.
    learns_usage: bool,
    /// `true` if the response has no body because the request was a HEAD.
    answers_head: bool,
    /// `true` if the provider doesn't bill the request: what it answers is of an earlier one, if of any.
    is_free: bool,
    sent: bool,
    /// `true` once an answer has shown whether the provider accepted the request.
    is_judged: bool,
    /// `true` if a response arrived.
    is_answered: bool,
    charged: Option<Cost>,
    /// The number of tokens that the response headers state as charged.
    charged_tokens: Option<u64>,
    late_cost: Option<LateCost>,
    /// The time at which all that had arrived of a body was read that was received before.
    pub(super) read_until: Option<Timestamp>,
}

impl ResponseGuard {
    /// Guards the reservation of an admitted request; `arrived` is the time of its arrival, or `None` if
    /// it was admitted immediately.
    #[inline]
    pub(super) fn new(
        permit: Permit,
        classified: &mut Classified,
        record: Option<Box<Record>>,
        arrived: Option<Timestamp>,
    ) -> Self {
        let keys = std::mem::take(&mut classified.keys);
        let journey = classified.journey.take();
        if let Some(journey) = &journey {
            journey.begin(keys.first(), &permit, arrived);
        }
        if let Some(record) = &record {
            record.on_granted(&permit);
        }
        Self {
            permit: Some(permit),
            limiter: None,
            keys,
            journey,
            record,
            terms: classified.terms,
            mode: classified.mode,
            price: classified.price.take(),
            most: classified.most,
            number: classified.number,
            has_failed: classified.has_failed,
            waits_for_server: classified.waits_for_server,
            learns_usage: classified.guess.is_some() || classified.cached.may_be_free(),
            answers_head: classified.is_head,
            is_free: classified.call.as_ref().is_some_and(|call| call.is_free),
            sent: false,
            is_answered: false,
            is_judged: false,
            charged: None,
            charged_tokens: None,
            late_cost: None,
            read_until: None,
        }
    }

    /// Returns the span of the request, if it has one.
    pub(super) fn span(&self) -> Option<Span> {
        self.record.as_ref().map(|record| record.span())
    }

    /// Returns the key that the provider's limits apply to: the primary key.
    fn key(&self) -> &str {
        self.keys.first().map_or("", ScopeKey::as_str)
    }

    /// Marks the request as sent: from now on a drop settles the reservation.
    pub(super) fn mark_sent(&mut self) {
        self.sent = true;
    }

    /// Records an error of the inner service; `is_unsent` if the request was not sent.
    pub(super) fn on_inner_error(&mut self, is_unsent: bool) {
        self.sent = !is_unsent;
        self.on_error(if is_unsent { "not_sent" } else { OTHER });
    }

    /// Records an error, by its OpenTelemetry error type.
    pub(super) fn on_error(&mut self, error: &str) {
        if let Some(record) = &mut self.record {
            record.on_error(error);
        }
    }

    /// Holds a reference to the limiter from now on.
    pub(super) fn keep_limiter(&mut self, limiter: &Limiter) {
        self.limiter = Some(limiter.clone());
    }

    /// Returns the limiter.
    ///
    /// # Panics
    /// Panics if [`keep_limiter`](Self::keep_limiter) wasn't called.
    pub(super) fn limiter(&self) -> &Limiter {
        self.limiter.as_ref().expect("a guard with a response holds the limiter")
    }

    /// Records that a response arrived.
    pub(super) fn on_response(&mut self) {
        self.is_answered = true;
        if let Some(record) = &mut self.record {
            record.on_response();
        }
    }

    /// Sets the actual cost of the request.
    pub fn charged(&mut self, charge: Cost) {
        self.charged = Some(charge);
    }

    /// Sets the cost from which the actual one is taken when the response ends.
    pub(super) fn set_late_cost(&mut self, cost: LateCost) {
        self.late_cost = Some(cost);
    }

    /// Sets the time at which the last bytes of the body were received, for a body that was received before it is read.
    /// If the body is cut off, the provider may have generated more from then on. Default: the times at which the
    /// [`Reading`](super::Reading) awaits more.
    pub fn read_until(&mut self, time: Timestamp) {
        self.read_until = Some(time);
    }

    /// Returns true if the provider doesn't bill the request.
    pub(super) fn is_free(&self) -> bool {
        self.is_free
    }

    /// Returns whether the response has no body because the request was a HEAD.
    pub(super) fn answers_head(&self) -> bool {
        self.answers_head
    }

    /// Reads the status and the headers of a response.
    pub(super) fn read_head(&mut self, profile: Profile, status: StatusCode, headers: &HeaderMap) {
        if let Some(journey) = &self.journey {
            journey.write(|facts| facts.status = Some(status));
        }
        if let Some(record) = &mut self.record {
            record.on_head(status);
        }
        let limits = profile.limits_in_mode(self.mode, headers);
        // Learn the limits before the remaining quota is observed. Other errors may name any model.
        let has_limits = || is_refusal(status) && limits.iter().any(|limit| limit.limit.is_some());
        if status.is_success() || has_limits() {
            self.limiter().feedback().learn(self.key(), &limits);
        }
        if let Some(permit) = &self.permit {
            permit.observe(&limits);
            permit.observe_utilization(&profile.utilization(headers, self.now()));
        }
        self.charged_tokens = profile.charged_in_head(headers);
        // The body may say that the request was refused.
        self.is_judged = true;
    }

    /// Reports that the provider has accepted the request.
    pub(super) fn on_accepted(&self) {
        self.permit.iter().for_each(seam::accepted);
    }

    /// Reports the provider's refusal to the limiter. Replaces `hold`, if any.
    pub(super) fn report_refusal(&mut self, refusal: Refusal, hold: Option<Hold>) {
        self.report(RateLimited::of(refusal), hold);
    }

    /// Returns whether requests wait while the server fails all of them.
    pub(super) fn waits_for_server(&self) -> bool {
        self.waits_for_server
    }

    /// Reports a failure that isn't a refusal, if requests wait for the server.
    pub(super) fn report_failure(&mut self, failure: ServerFailure) {
        if self.waits_for_server {
            self.report(failure.report(), None);
        }
    }

    /// Reports a refusal or another failure to the limiter. Replaces `hold`, if any.
    fn report(&mut self, refused: RateLimited, hold: Option<Hold>) {
        self.is_judged = true;
        let _inside = self.span().map(Span::entered);
        let refused = seam::of_request(refused, self.number, self.has_failed, self.granted_at());
        let cost = self.permit.as_ref().map(Permit::cost);
        seam::refused(self.limiter().feedback(), hold, self.key(), &refused, cost);
    }

    /// Holds all requests of the key for this long, or until [`release_hold`](Self::release_hold).
    pub(super) fn hold(&self, delay: Duration) -> Option<Hold> {
        seam::hold(self.limiter().feedback(), self.key(), delay)
    }

    /// Releases a hold.
    pub(super) fn release_hold(&self, hold: Hold) {
        seam::release_hold(self.limiter().feedback(), self.key(), hold);
    }

    /// Returns the time at which the request was admitted.
    pub(super) fn granted_at(&self) -> Option<Timestamp> {
        self.permit.as_ref().map(Permit::granted_at)
    }

    /// Returns the limiter's current time.
    pub(super) fn now(&self) -> Timestamp {
        self.limiter().now()
    }

    /// Settles the dimensions that the profile settles early, by usage from the middle of the body.
    pub(super) fn settle_early(&mut self, profile: Profile, usage: &Usage) {
        if let (Some(permit), None) = (&mut self.permit, &self.charged) {
            let charge = profile.charge(permit.cost(), usage);
            for dimension in provider_seam::settled_early(&profile) {
                permit.settle_early(&dimension, charge.amount(&dimension));
            }
        }
    }

    /// Returns `true` if the charge of a stream that is cut off depends on the text that was received.
    pub(super) fn measures_output(&self, profile: Profile) -> bool {
        let counts_output = || profile.settles(&Dimension::OutputTokens) == SettleAt::End;
        self.most.is_charged_as_received && (self.price.is_some() || counts_output())
    }

    /// Sets the actual cost from the final usage in the body.
    pub(super) fn set_usage(&mut self, profile: Profile, usage: &Usage) {
        if self.learns_usage {
            let (feedback, reads_cache) = (self.limiter().feedback(), usage.cache_read > 0);
            seam::usage_seen(feedback, self.key(), usage.output, reads_cache);
        }
        let price = self.price.as_ref().map(|price| price.cost(usage));
        self.set_charge(|permit, terms| {
            let charge = terms.apply(profile.charge(permit.cost(), usage), usage);
            match price {
                Some(micros) => charge.custom(USD, micros),
                None => charge,
            }
        });
    }

    /// Sets the actual cost of a response that was cut off, or doesn't state its usage.
    pub(super) fn set_cut(&mut self, profile: Profile, cut: &CutStream) {
        let (most, price) = (self.most, self.price.clone());
        self.set_charge(|permit, terms| {
            cut.charge(profile, permit.cost(), terms, &most, price.as_deref())
        });
    }

    fn set_charge(&mut self, charge: impl FnOnce(&Permit, &Terms) -> Cost) {
        let Some(permit) = &self.permit else { return };
        self.charged.get_or_insert_with(|| {
            let charge = charge(permit, &self.terms);
            match self.charged_tokens {
                Some(tokens) => charge.tokens(tokens),
                None => charge,
            }
        });
    }

    /// Sets the actual cost of a request that failed.
    pub(super) fn set_failed(&mut self, profile: Profile, charge: FailureCharge) {
        if charge == FailureCharge::Reserved {
            return;
        }
        let is_priced = self.price.is_some();
        self.set_charge(|permit, _| {
            let mut cost = permit.cost().clone();
            if is_priced {
                seam::set_amount(&mut cost, &Dimension::usd(), 0);
            }
            if charge == FailureCharge::Request {
                provider_seam::remove_tokens(&profile, &mut cost);
            }
            cost
        });
    }

    /// Records that the body can't be read because of its encoding, so that the reserved cost is charged.
    pub(super) fn on_unread_body(&self, encoding: &HeaderValue) {
        WARN.call_once(|| {
            tracing::warn!(
                ?encoding,
                "cannot read the usage of a compressed response, the reserved cost is charged; enable \
                 decompression in the inner client"
            );
        });
        if let Some(journey) = &self.journey {
            let encoding = String::from_utf8_lossy(encoding.as_bytes());
            journey.write(|facts| facts.unread = Some(encoding.into()));
        }
    }

    /// Records the usage and the error of the body in the record and the journey.
    pub(super) fn on_body(&mut self, scanned: Scanned) {
        if let Some(record) = &mut self.record {
            record.on_body(&scanned);
        }
        if let Some(journey) = &self.journey {
            journey.write(|facts| (facts.usage, facts.error) = (scanned.usage, scanned.error));
        }
    }

    fn end(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let _inside = self.span().map(Span::entered);
        if !self.sent {
            return permit.release();
        }
        match (self.is_judged, self.is_answered) {
            (true, _) => {}
            (false, true) => seam::accepted(&permit),
            (false, false) => seam::unanswered(&permit),
        }
        let later = || self.late_cost.as_ref().and_then(LateCost::get);
        let in_head = || self.charged_tokens.map(|tokens| permit.cost().clone().tokens(tokens));
        let charge = self.charged.take().or_else(later).or_else(in_head);
        if let Some(journey) = &self.journey {
            let charged = charge.as_ref().unwrap_or(permit.cost());
            journey.write(|facts| facts.charged = Some(charged.clone()));
        }
        if let Some(record) = &self.record {
            record.on_charged(charge.as_ref().unwrap_or(permit.cost()));
        }
        match &charge {
            Some(charge) => permit.settle(charge),
            // Dropping the permit charges the reserved cost.
            None => drop(permit),
        }
    }
}

impl Drop for ResponseGuard {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for ResponseGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseGuard")
            .field("keys", &self.keys)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

/// Limits the warning to once per process, since it would repeat for every response of a client.
static WARN: Once = Once::new();
