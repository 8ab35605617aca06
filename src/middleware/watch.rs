use std::fmt;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::charge::Charge;
use super::journey::Journey;
use super::keys::{Key, Keys};
use super::reading::Reading;
use crate::limiter::{Limiter, Permit, RateLimited};
use crate::provider::{Profile, Scanned};
use crate::quota::{Cost, Dimension, Usage};

/// Goes with a request from its admission to the end of its response, and ends its reservation when
/// it is dropped: releases it if the request never left, and else settles it.
pub struct Watch {
    permit: Option<Permit>,
    pub(super) limiter: Limiter,
    pub(super) keys: Keys,
    discover: bool,
    journey: Option<Journey>,
    floor: u64,
    burn_down: u64,
    sent: bool,
    charged: Option<Cost>,
    later: Option<Charge>,
}

impl Watch {
    pub(super) fn new(
        permit: Permit,
        limiter: Limiter,
        keys: Keys,
        discover: bool,
        journey: Option<Journey>,
    ) -> Self {
        let (permit, sent) = (Some(permit), false);
        Self {
            permit,
            limiter,
            keys,
            discover,
            journey,
            floor: 0,
            burn_down: 1,
            sent,
            charged: None,
            later: None,
        }
    }

    /// Charges at least so many tokens, whatever the response says that it used.
    pub(super) fn with_floor(mut self, tokens: u64) -> Self {
        self.floor = tokens;
        self
    }

    /// Charges each generated token as so many.
    pub(super) fn with_burn_down(mut self, tokens: u64) -> Self {
        self.burn_down = tokens;
        self
    }

    /// The key that the provider's own limits belong to: the request's first.
    fn key(&self) -> &str {
        self.keys.first().map_or("", Key::as_str)
    }

    /// The request is on its way: from here on a drop keeps the charge.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    /// It turned out that it never left.
    pub(super) fn never_left(mut self) {
        self.sent = false;
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
    pub fn head(self, profile: Profile, status: StatusCode, headers: &HeaderMap) -> Reading {
        if let Some(journey) = &self.journey {
            journey.write(|facts| facts.status = Some(status));
        }
        if self.discover {
            let limits = profile.limits(headers);
            if status.is_success() || limits.iter().any(|limit| limit.limit.is_some()) {
                self.limiter.learn(self.key(), &limits);
            }
        }
        Reading::new(self, profile, status, headers)
    }

    /// The provider refused the request: nothing of its key is sent for a while.
    pub(super) fn refused(&self, delay: Option<Duration>) {
        self.limiter.on_rate_limited(self.key(), &RateLimited::new(delay));
    }

    /// The limiter's time, in nanoseconds since the epoch.
    pub(super) fn now(&self) -> u64 {
        self.limiter.now()
    }

    /// What the body said of what the request used.
    pub(super) fn used(&mut self, profile: Profile, usage: &Usage) {
        let Some(permit) = &self.permit else { return };
        self.charged.get_or_insert_with(|| {
            let charge = profile.charge(permit.cost(), usage);
            let burnt = usage.output.saturating_mul(self.burn_down.saturating_sub(1));
            let tokens = charge.amount(&Dimension::Tokens).saturating_add(burnt);
            charge.tokens(tokens.max(self.floor))
        });
    }

    /// What the body said goes into the journey, where there is one.
    pub(super) fn said(&self, said: Scanned) {
        if let Some(journey) = &self.journey {
            journey.write(|facts| (facts.usage, facts.error) = (said.usage, said.error));
        }
    }

    fn end(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        if !self.sent {
            return permit.release();
        }
        let later = || self.later.as_ref().and_then(Charge::cost);
        let charge = self.charged.take().or_else(later);
        if let Some(journey) = &self.journey {
            let charged = charge.as_ref().unwrap_or(permit.cost());
            journey.write(|facts| facts.charged = Some(charged.clone()));
        }
        match &charge {
            Some(charge) => permit.settle(charge),
            // Keeps the charge as it was reserved.
            None => drop(permit),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("keys", &self.keys)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}
