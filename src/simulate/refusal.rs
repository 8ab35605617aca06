//! A request above a limit, and how OpenAI words it.

use std::fmt;
use std::time::Duration;

use super::headers::go_duration;

/// Which limit fell short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// Requests per minute.
    RequestsPerMinute,
    /// Tokens per minute, as the charge rule counts them.
    TokensPerMinute,
    /// Requests per day of 24 hours.
    RequestsPerDay,
}

/// A request that a limit had no room for; it took nothing.
///
/// Displays as the message of OpenAI's 429.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The model that was asked for.
    pub model: String,
    /// The limit that fell short; of several, the one with the longest wait.
    pub kind: LimitKind,
    /// What the limit allows per window, in requests or tokens.
    pub limit: u64,
    /// What of it was in use, rounded up.
    pub used: u64,
    /// What this request asked for.
    pub requested: u64,
    /// The exact time after which it would be admitted if nobody else came; `None` where it
    /// never would.
    pub retry_after: Option<Duration>,
}

impl LimitKind {
    /// The length of the window in nanoseconds.
    pub(super) fn window_ns(self) -> u64 {
        match self {
            Self::RequestsPerMinute | Self::TokensPerMinute => MINUTE_NS,
            Self::RequestsPerDay => 24 * 60 * MINUTE_NS,
        }
    }

    /// The `type` of the error body.
    pub(super) fn error_type(self) -> &'static str {
        match self {
            Self::RequestsPerMinute | Self::RequestsPerDay => "requests",
            Self::TokensPerMinute => "tokens",
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RequestsPerMinute => "requests per min (RPM)",
            Self::TokensPerMinute => "tokens per min (TPM)",
            Self::RequestsPerDay => "requests per day (RPD)",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, kind, limit, used, requested, .. } = self;
        let Some(wait) = self.retry_after else {
            return write!(
                f,
                "Request too large for {model} in organization {ORGANIZATION} on {kind}: \
                 Limit {limit}, Requested {requested}. The input or output tokens must be \
                 reduced in order to run successfully. {MORE}"
            );
        };
        write!(
            f,
            "Rate limit reached for {model} in organization {ORGANIZATION} on {kind}: \
             Limit {limit}, Used {used}, Requested {requested}. \
             Please try again in {}. {MORE}",
            go_duration(wait)
        )
    }
}

impl std::error::Error for Refusal {}

/// The organization that every request belongs to.
pub(super) const ORGANIZATION: &str = "org-tollgate";

const MORE: &str = "Visit https://platform.openai.com/account/rate-limits to learn more.";
const MINUTE_NS: u64 = 60_000_000_000;
