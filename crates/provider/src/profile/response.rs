use std::time::Duration;

use http::{HeaderMap, StatusCode};
use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{LimitReadings, UtilizationReading};
use paceline_limiter::quota::Dimension;
use paceline_limiter::quota::{Cost, Usage};
use paceline_limiter::seam;

use super::Profile;
use crate::error::ApiError;
use crate::scanner::TokenCounts;
use crate::{Class, FailureCharge, Refusal, class, refusal};

/// The longest [`retry_delay`](Profile::retry_delay): one day. A longer one is cut to it.
pub const LONGEST_DELAY: Duration = Duration::from_secs(86_400);

/// Reads responses.
impl Profile {
    /// Returns the charge in each dimension for this usage, before the estimate's
    /// [`Terms`](crate::Terms) are applied.
    #[must_use]
    pub fn charge(&self, reserved: &Cost, usage: &Usage) -> Cost {
        self.rules.charge.of_usage(reserved, usage)
    }

    /// Returns the charge to the token limit that the headers of a response state; `None` with
    /// providers that state none. It is final and replaces the `Tokens` of [`charge`](Self::charge).
    pub fn charged_in_head(&self, headers: &HeaderMap) -> Option<u64> {
        number(headers, self.rules.charge_header?)
    }

    /// Returns the limits and remainders that the headers of a response state. Resets that are times
    /// are measured from the response's `date`.
    pub fn limits(&self, headers: &HeaderMap) -> LimitReadings {
        self.rules.limits.read(headers)
    }

    /// Returns the limits and remainders that the headers of a response in a [`Mode`](crate::Mode) state.
    pub fn limits_in_mode(&self, mode: Option<&str>, headers: &HeaderMap) -> LimitReadings {
        let mode = mode.and_then(|name| self.rules.modes.iter().find(|mode| mode.name == name));
        mode.and_then(|mode| mode.limits).unwrap_or(self.rules.limits).read(headers)
    }

    /// Returns the used part of each of the account's windows that the headers of a response state. Resets that
    /// are times are measured from the response's `date`; without one from `now`.
    pub fn utilization(&self, headers: &HeaderMap, now: Timestamp) -> Vec<UtilizationReading> {
        self.rules.utilization.map_or_else(Vec::new, |form| form.read(headers, now))
    }

    /// Returns what a refusal says: its kind, the delay or the reset, and the limit. `None` for a success, and for a
    /// failure that refuses nothing: a server error, an invalid request.
    ///
    /// `body` may be cut off, or empty if it can't be read. Times are measured from the response's `date`; without
    /// one from `now`. The body of a success isn't read: see [`refusal_in_band`](Self::refusal_in_band).
    ///
    /// The kind is recognised by the status, codes, amounts and windows, then by words that many providers share. The
    /// delay is the first of those in the headers, in members of the body and in the message, and the longest one for
    /// [`RefusalKind::Window`](crate::RefusalKind::Window), where a provider whose days end at a
    /// [known time](crate::ErrorRules::days_reset_in) counts too.
    pub fn refusal(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Option<Refusal> {
        refusal::of_response(&self.rules.errors, status, headers, body, now)
    }

    /// Returns what an error in the body of a success says, as [`refusal`](Self::refusal) does. The headers of the
    /// response say nothing of it: they speak of the request that was accepted, at the time of its head. Anthropic sends
    /// `retry-after` with successes too.
    pub fn refusal_in_band(&self, error: &ApiError, now: Timestamp) -> Option<Refusal> {
        refusal::of_error(&self.rules.errors, error, now)
    }

    /// Returns the delay before a retry that the provider asks for, also after a failure that is no
    /// [refusal](Self::refusal), at most [`LONGEST_DELAY`].
    ///
    /// In the order of the official SDKs: `retry-after-ms`, then `retry-after` in seconds, as a duration or as a date;
    /// then headers with the reset of a limit that is used up, members of the body such as Gemini's `retryDelay`, and
    /// messages like "try again in 6m0s". A time that has passed is zero, a negative number is no delay. Times are
    /// measured from the response's `date`; without one from `now`. A success may have a delay too (Anthropic).
    pub fn retry_delay(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Option<Duration> {
        let delay = refusal::stated_delay(&self.rules.errors, headers, body, now)?;
        Some(delay.min(LONGEST_DELAY))
    }

    /// Returns the class of a response by its status, headers and error body.
    ///
    /// The body of a success is not read: the [`Scanner`](crate::Scanner) finds errors in it,
    /// and [`InvalidAnswer::check`](crate::InvalidAnswer::check) checks that it is an answer.
    pub fn classify(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Class {
        class::of_response(&self.rules.errors, status, headers, body)
    }

    /// Returns the class of an error in the body of a 200: [`Class::Transient`] unless the error says
    /// that the request or the account is at fault, or that a long limit was reached.
    pub fn classify_in_band(&self, error: &ApiError) -> Class {
        class::of_error(&self.rules.errors, error)
    }

    /// Returns what a request is charged that failed with this status, from 300 on. `body` may be cut off, or
    /// empty if it can't be read.
    pub fn failure_charge(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> FailureCharge {
        FailureCharge::of_response(self, status, headers, body)
    }

    /// Returns what a request is charged whose response is a 200 with this error in its body, before anything
    /// was generated.
    pub fn failure_charge_in_band(&self, error: &ApiError) -> FailureCharge {
        FailureCharge::of_error(self, error)
    }

    /// Removes the tokens and the provider's units from a cost: what is left is a request.
    pub(crate) fn remove_tokens(&self, cost: &mut Cost) {
        let tokens = [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens];
        let units = self.rules.units.iter().map(|unit| unit.dimension());
        for dimension in tokens.into_iter().chain(units) {
            if cost.amount(&dimension) > 0 {
                seam::set_amount(cost, &dimension, 0);
            }
        }
    }

    /// Returns the token counts that the headers of a response state.
    pub(crate) fn counts_in_head(&self, headers: &HeaderMap) -> TokenCounts {
        let mut counts = TokenCounts::default();
        for (name, count) in self.rules.usage_headers {
            if let Some(tokens) = number(headers, name) {
                counts.set(*count, tokens);
            }
        }
        counts
    }
}

/// Returns the number in a header.
fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}
