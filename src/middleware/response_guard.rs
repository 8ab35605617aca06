use std::fmt;
use std::sync::Once;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use tracing::Span;

use super::charge::Charge;
use super::classify::Classified;
use super::journey::Journey;
use super::reading::Reading;
use super::record::{OTHER, Record};
use super::scope_key::{ScopeKey, ScopeKeys};
use super::settings::Settings;
use crate::limiter::{Hold, Limiter, Permit, RateLimited};
use crate::provider::{Class, Profile, Scanned, Terms};
use crate::quota::{Cost, Dimension, Usage};
use crate::timestamp::Timestamp;

/// Goes with a request from its admission to the end of its response, and ends its reservation when
/// it is dropped: releases it if the request never left, and else settles it.
pub struct ResponseGuard {
    permit: Option<Permit>,
    /// Once there is a response that may outlive the service: until then the service's future keeps it.
    limiter: Option<Limiter>,
    pub(super) keys: ScopeKeys,
    discover: bool,
    journey: Option<Journey>,
    record: Option<Box<Record>>,
    terms: Terms,
    /// Whether what it puts out tells what the next may.
    learns: bool,
    sent: bool,
    charged: Option<Cost>,
    /// What the head of the response said of the tokens.
    charged_tokens: Option<u64>,
    later: Option<Charge>,
}

impl ResponseGuard {
    /// Guards the reservation of a request that was admitted; `arrived` is when it arrived.
    #[inline]
    pub(super) fn new<C, O>(
        permit: Permit,
        classified: &mut Classified,
        record: Option<Box<Record>>,
        arrived: Option<Timestamp>,
        shared: &Settings<C, O>,
    ) -> Self {
        let keys = std::mem::take(&mut classified.keys);
        let journey = classified.journey.take();
        if let Some(journey) = &journey {
            journey.begin(keys.first(), &permit, arrived);
        }
        if let Some(record) = &record {
            record.granted(&permit);
        }
        Self {
            permit: Some(permit),
            limiter: None,
            keys,
            discover: shared.options.discover,
            journey,
            record,
            terms: classified.terms,
            learns: classified.guess.is_some(),
            sent: false,
            charged: None,
            charged_tokens: None,
            later: None,
        }
    }

    /// The span of its record, if it has one.
    pub(super) fn span(&self) -> Option<Span> {
        self.record.as_ref().map(|record| record.span())
    }

    /// The key that the provider's own limits belong to: the request's first.
    fn key(&self) -> &str {
        self.keys.first().map_or("", ScopeKey::as_str)
    }

    /// The request is on its way: from here on a drop keeps the charge.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    /// Its inner service failed with an error, which may say that the request never left.
    pub(super) fn failed_with(&mut self, never_left: bool) {
        self.sent = !never_left;
        self.failed(if never_left { "not_sent" } else { OTHER });
    }

    /// It came to an error.
    pub(super) fn failed(&mut self, error: &str) {
        if let Some(record) = &mut self.record {
            record.failed(error);
        }
    }

    /// Keeps the limiter from now on.
    pub(super) fn keep(&mut self, limiter: &Limiter) {
        self.limiter = Some(limiter.clone());
    }

    /// Returns the limiter.
    pub(super) fn limiter(&self) -> &Limiter {
        self.limiter.as_ref().expect("a guard that is handed over keeps the limiter")
    }

    /// It came to a response.
    pub(super) fn answered(&mut self) {
        if let Some(record) = &mut self.record {
            record.answered();
        }
    }

    /// What the request was charged, where that is already known.
    pub fn charged(&mut self, charge: Cost) {
        self.charged = Some(charge);
    }

    /// What the request was charged, where that is only known by the end of its response.
    pub fn charged_later(&mut self, charge: Charge) {
        self.later = Some(charge);
    }

    /// Reads a response's head: its limits, whether it is a refusal, and what to look for in its
    /// body.
    #[must_use = "dropping it ends the reservation"]
    pub fn head(mut self, profile: Profile, status: StatusCode, headers: &HeaderMap) -> Reading {
        if let Some(journey) = &self.journey {
            journey.write(|facts| facts.status = Some(status));
        }
        if let Some(record) = &mut self.record {
            record.head(status);
        }
        let limits = profile.limits(headers);
        // First the limits, then what is left of them.
        let tells = || status.is_success() || limits.iter().any(|limit| limit.limit.is_some());
        if self.discover && tells() {
            self.limiter().feedback().learn(self.key(), &limits);
        }
        if let Some(permit) = &self.permit {
            permit.observe(&limits);
        }
        self.charged_tokens = profile.charged_in_head(headers);
        Reading::new(self, profile, status, headers)
    }

    /// The provider refused the request: nothing of its key is sent for a while, in place of a hold.
    pub(super) fn refused(
        &self,
        (delay, class, dimension): (Option<Duration>, Class, Option<Dimension>),
        hold: Option<Hold>,
    ) {
        let mut refusal = RateLimited::new(delay);
        if let Some(permit) = &self.permit {
            refusal = refusal.sent_at(permit.granted_at());
        }
        if class == Class::UntilReset {
            refusal = refusal.until_reset();
        }
        refusal.dimension = dimension;
        let _inside = self.span().map(Span::entered);
        self.limiter().feedback().rate_limited_after_hold(hold, self.key(), &refusal);
    }

    /// Nothing of its key is sent for so long, or until that is taken back.
    pub(super) fn hold(&self, delay: Duration) -> Option<Hold> {
        self.limiter().feedback().hold(self.key(), delay)
    }

    pub(super) fn let_go(&self, hold: Hold) {
        self.limiter().feedback().let_go(self.key(), hold);
    }

    /// The limiter's time.
    pub(super) fn now(&self) -> Timestamp {
        self.limiter().now()
    }

    /// The body has said something of what the request used, and goes on: what that settles already,
    /// is settled.
    pub(super) fn uses(&mut self, profile: Profile, usage: &Usage) {
        if let (Some(permit), None) = (&mut self.permit, &self.charged) {
            let charge = profile.charge(permit.cost(), usage);
            for dimension in profile.settled_early() {
                permit.settle_early(&dimension, charge.amount(&dimension));
            }
        }
    }

    /// What the body said of what the request used. What is not `is_final` is the least of it.
    pub(super) fn used(&mut self, profile: Profile, usage: &Usage, is_final: bool) {
        if self.learns && is_final {
            self.limiter().feedback().output_seen(self.key(), usage.output);
        }
        let Some(permit) = &self.permit else { return };
        self.charged.get_or_insert_with(|| {
            let charge = self.terms.apply(profile.charge(permit.cost(), usage), usage);
            let charge = if is_final { charge } else { unended(profile, permit, usage, charge) };
            match self.charged_tokens {
                Some(tokens) => charge.tokens(tokens),
                None => charge,
            }
        });
    }

    /// Its body passes in this encoding, so that its usage can't be read: what was reserved counts.
    pub(super) fn unread(&self, encoding: &HeaderValue) {
        WARN.call_once(|| {
            tracing::warn!(
                ?encoding,
                "a compressed response passes through the layer, which can't read its usage: what \
                 was reserved counts. Let the client below decompress"
            );
        });
        if let Some(journey) = &self.journey {
            let encoding = String::from_utf8_lossy(encoding.as_bytes());
            journey.write(|facts| facts.unread = Some(encoding.into()));
        }
    }

    /// What the body said goes into the journey and the record, where there are any.
    pub(super) fn said(&mut self, said: Scanned) {
        if let Some(record) = &mut self.record {
            record.said(&said);
        }
        if let Some(journey) = &self.journey {
            journey.write(|facts| (facts.usage, facts.error) = (said.usage, said.error));
        }
    }

    fn end(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let _inside = self.span().map(Span::entered);
        if !self.sent {
            return permit.release();
        }
        let later = || self.later.as_ref().and_then(Charge::cost);
        let in_head = || self.charged_tokens.map(|tokens| permit.cost().clone().tokens(tokens));
        let charge = self.charged.take().or_else(later).or_else(in_head);
        if let Some(journey) = &self.journey {
            let charged = charge.as_ref().unwrap_or(permit.cost());
            journey.write(|facts| facts.charged = Some(charged.clone()));
        }
        if let Some(record) = &self.record {
            record.charged(charge.as_ref().unwrap_or(permit.cost()));
        }
        match &charge {
            Some(charge) => permit.settle(charge),
            // Keeps the charge as it was reserved.
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

/// What is charged to a response that was cut off after it had stated this usage: nobody knows what
/// more the provider generated, so that the output counts as it was reserved.
fn unended(profile: Profile, permit: &Permit, stated: &Usage, charge: Cost) -> Cost {
    let reserved = permit.cost();
    let output = match reserved.amount(&Dimension::OutputTokens) {
        // A cost that doesn't tell them apart.
        0 => reserved.amount(&Dimension::Tokens).saturating_sub(stated.input),
        output => output,
    };
    let output = stated.output.max(output);
    let most = profile.charge(reserved, &Usage { output, ..*stated });
    [Dimension::Tokens, Dimension::OutputTokens].iter().fold(charge, |mut charge, dimension| {
        charge.set(dimension, charge.amount(dimension).max(most.amount(dimension)));
        charge
    })
}

/// Once a process: it is the same for every response of a client.
static WARN: Once = Once::new();
