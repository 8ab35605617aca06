//! Simulated failures that are unrelated to limits.

use std::time::Duration;

/// A failure of some requests, before their limits are checked and without a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The requests that fail.
    pub target: FaultTarget,
    /// The kind of failure.
    pub kind: FaultKind,
}

/// The requests that a [`Fault`] affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultTarget {
    /// Every `n`th request: 1 fails each, 2 every second one, and so on; 0 none.
    Every(u64),
    /// Requests from the first time to before the second, both since the first request.
    Between(Duration, Duration),
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
    /// 429 without a retry time, since waiting does not help: OpenAI's `insufficient_quota`,
    /// Anthropic's spending limit, Gemini's daily quota of 0.
    InsufficientQuota,
}

impl Fault {
    /// Creates a fault of every `n`th request.
    pub fn every(n: u64, kind: FaultKind) -> Self {
        Self { target: FaultTarget::Every(n), kind }
    }

    /// Creates a fault of all requests from one time to before another, since the first request.
    pub fn between(from: Duration, until: Duration, kind: FaultKind) -> Self {
        Self { target: FaultTarget::Between(from, until), kind }
    }

    /// Returns whether the `nth` request, counted from 1, fails at a time since the first one.
    pub(super) fn applies_to(&self, nth: u64, elapsed: Duration) -> bool {
        match self.target {
            FaultTarget::Every(n) => n > 0 && nth.is_multiple_of(n),
            FaultTarget::Between(from, until) => from <= elapsed && elapsed < until,
        }
    }
}
