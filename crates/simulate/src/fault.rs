//! Failures that have nothing to do with a limit, to try a client with.

/// Every `every`th request that is received fails, before the limits are asked: it takes
/// nothing. 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// 1 fails each request, 2 every second one, ...
    pub every: u64,
    /// How it fails.
    pub failure: Failure,
}

/// A failure, which each format puts in its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// 500: OpenAI's `server_error`, Anthropic's `api_error`, Gemini's `INTERNAL`.
    ServerError,
    /// 503: OpenAI's `server_is_overloaded`, Gemini's `UNAVAILABLE`; Anthropic's 529
    /// `overloaded_error`.
    Overloaded,
    /// 401: OpenAI's `invalid_api_key`, Anthropic's `authentication_error`; Gemini's 400
    /// `API_KEY_INVALID`.
    Unauthorized,
    /// 429 without a time to come back, since waiting does not help: OpenAI's
    /// `insufficient_quota`, Anthropic's spending limit, Gemini's quota of 0 per day.
    InsufficientQuota,
}

impl Fault {
    /// Whether the `nth` request (from 1) is one that fails.
    pub(super) fn applies_to(&self, nth: u64) -> bool {
        self.every > 0 && nth.is_multiple_of(self.every)
    }
}
