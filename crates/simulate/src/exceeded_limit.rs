//! A limit that refuses a request.

use std::fmt;
use std::time::Duration;

/// The kinds of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// Requests per minute.
    RequestsPerMinute,
    /// Tokens per minute, as the charge rule counts them.
    TokensPerMinute,
    /// Requests per day: 24 hours, or a Pacific day for Gemini.
    RequestsPerDay,
    /// Input tokens per minute, without those read from a cache.
    InputTokensPerMinute,
    /// Output tokens per minute.
    OutputTokensPerMinute,
    /// Requests in flight.
    Concurrency,
    /// Micro-dollars per rolling ten minutes.
    Spend,
}

/// A limit that refused a request, which was not charged.
///
/// Displays as the message of OpenAI's 429.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExceededLimit {
    /// The requested model.
    pub model: String,
    /// The limit that refused; of several, the one with the longest wait.
    pub kind: LimitKind,
    /// The amount that the limit allows per window, in requests, tokens or micro-dollars.
    pub limit: u64,
    /// The amount in use, rounded up.
    pub used: u64,
    /// The amount that this request needs.
    pub requested: u64,
    /// The exact wait after which the request is admitted without further requests; `None` if it
    /// never is.
    pub retry_after: Option<Duration>,
}

impl LimitKind {
    /// Returns the length of the window in nanoseconds; requests in flight have none.
    pub(super) fn window_ns(self) -> u64 {
        match self {
            Self::RequestsPerDay => 24 * 60 * MINUTE_NS,
            Self::Spend => 10 * MINUTE_NS,
            _ => MINUTE_NS,
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RequestsPerMinute => "requests per min (RPM)",
            Self::TokensPerMinute => "tokens per min (TPM)",
            Self::RequestsPerDay => "requests per day (RPD)",
            Self::InputTokensPerMinute => "input tokens per min (ITPM)",
            Self::OutputTokensPerMinute => "output tokens per min (OTPM)",
            Self::Concurrency => "concurrent requests",
            Self::Spend => "micro-dollars per 10 min",
        })
    }
}

impl ExceededLimit {
    /// Returns the time until the request would be admitted; the maximum if it never is.
    pub(super) fn wait(&self) -> Duration {
        self.retry_after.unwrap_or(Duration::MAX)
    }
}

// Its `Display` is in `openai/error.rs`, with the other texts of OpenAI.
impl std::error::Error for ExceededLimit {}

const MINUTE_NS: u64 = 60_000_000_000;
