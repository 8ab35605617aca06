//! Simulated failures that are unrelated to limits.

/// A failure of every `every`th request, before its limits are checked and without a charge. 0
/// disables it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The interval: 1 fails each request, 2 every second one, and so on.
    pub every: u64,
    /// The kind of failure.
    pub kind: FaultKind,
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
    /// Returns whether the `nth` request, counted from 1, fails.
    pub(super) fn applies_to(&self, nth: u64) -> bool {
        self.every > 0 && nth.is_multiple_of(self.every)
    }
}
