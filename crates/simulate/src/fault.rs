//! Simulated failures that are unrelated to limits.

use std::time::Duration;

use super::cycle::Cycle;
use super::exceeded_limit::{ExceededLimit, LimitKind};
use super::random::chance;

/// A failure of some requests, before their limits are checked and without a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The requests that fail.
    pub target: FaultTarget,
    /// The kind of failure.
    pub kind: FaultKind,
    /// The times for which requests fail; always if `None`.
    pub cycle: Option<Cycle>,
}

/// The requests that a [`Fault`] affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultTarget {
    /// Every `n`th request: 1 fails each, 2 every second one, and so on; 0 none.
    Every(u64),
    /// Requests from the first time to before the second, both since the first request.
    Between(Duration, Duration),
    /// This many of a million requests, drawn at random. A request that is sent again is drawn again, but for
    /// [`FaultKind::TooLarge`].
    PerMillion(u32),
}

/// A kind of failure, reported as each format does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// 500: OpenAI's `server_error`, Anthropic's `api_error`, Gemini's `INTERNAL`.
    ServerError,
    /// 503: OpenAI's `server_is_overloaded`, Gemini's `UNAVAILABLE`; Anthropic's 529
    /// `overloaded_error`.
    Overloaded,
    /// 401: OpenAI's `invalid_api_key`, Anthropic's `authentication_error`; Gemini's 400
    /// `API_KEY_INVALID`.
    Unauthorized,
    /// The account is spent, so that waiting does not help: OpenAI's 429 `insufficient_quota`, Anthropic's 400 of a
    /// spending limit, Gemini's 429 of a daily quota of 0.
    InsufficientQuota,
    /// 429 of a limit of requests per minute, for a second.
    RateLimited,
    /// The request is larger than a limit of the account: OpenAI's 429 of tokens per minute, Anthropic's of long
    /// contexts, Gemini's 400 of the context.
    TooLarge,
    /// 429 of a limit of requests per day, for an hour.
    DailyLimit,
}

impl Fault {
    /// Creates a fault of every `n`th request.
    pub fn every(n: u64, kind: FaultKind) -> Self {
        Self::new(FaultTarget::Every(n), kind)
    }

    /// Creates a fault of all requests from one time to before another, since the first request.
    pub fn between(from: Duration, until: Duration, kind: FaultKind) -> Self {
        Self::new(FaultTarget::Between(from, until), kind)
    }

    /// Creates a fault of a share of all requests: 0.05 fails one in twenty. A share outside of 0 to 1 counts as the
    /// nearer of both.
    pub fn share(share: f64, kind: FaultKind) -> Self {
        let per_million = (share.clamp(0.0, 1.0) * MILLION).round() as u32;
        Self::new(FaultTarget::PerMillion(per_million), kind)
    }

    /// Sets the times for which requests fail.
    #[must_use]
    pub fn with_cycle(self, cycle: Cycle) -> Self {
        Self { cycle: Some(cycle), ..self }
    }

    fn new(target: FaultTarget, kind: FaultKind) -> Self {
        Self { target, kind, cycle: None }
    }

    /// Returns whether the `nth` request, counted from 1, fails at a time since the first one.
    pub(super) fn applies_to(&self, seed: u64, nth: u64, elapsed: Duration, body: &[u8]) -> bool {
        if self.cycle.is_some_and(|cycle| !cycle.is_active(elapsed)) {
            return false;
        }
        match self.target {
            FaultTarget::Every(n) => n > 0 && nth.is_multiple_of(n),
            FaultTarget::Between(from, until) => from <= elapsed && elapsed < until,
            FaultTarget::PerMillion(share) => {
                let drawn = match self.kind {
                    FaultKind::TooLarge => chance(seed, (self, body)),
                    _ => chance(seed, (self, nth)),
                };
                drawn < f64::from(share) / MILLION
            }
        }
    }
}

impl FaultKind {
    /// Returns the limit that refuses a request, if a limit does.
    pub(super) fn limit(self, model: &str) -> Option<ExceededLimit> {
        let (kind, limit, requested, retry_after) = match self {
            Self::RateLimited => {
                (LimitKind::RequestsPerMinute, 500, 1, Some(Duration::from_secs(1)))
            }
            Self::TooLarge => (LimitKind::TokensPerMinute, 30_000, 41_210, None),
            Self::DailyLimit => {
                (LimitKind::RequestsPerDay, 10_000, 1, Some(Duration::from_secs(3_600)))
            }
            _ => return None,
        };
        Some(ExceededLimit {
            model: model.to_owned(),
            kind,
            limit,
            used: limit,
            requested,
            retry_after,
        })
    }
}

const MILLION: f64 = 1e6;
