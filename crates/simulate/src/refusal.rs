//! A request above a limit, and how OpenAI words it to who asks in Rust.

use std::fmt;
use std::time::Duration;

use super::openai::{ORGANIZATION, go_duration};

/// Which limit fell short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// Requests per minute.
    RequestsPerMinute,
    /// Tokens per minute, as the charge rule counts them.
    TokensPerMinute,
    /// Requests per day: of 24 hours, or Pacific time's where it is Gemini's.
    RequestsPerDay,
    /// Tokens of prompts per minute, those read from a cache left out.
    InputTokensPerMinute,
    /// Tokens of answers per minute.
    OutputTokensPerMinute,
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
            Self::RequestsPerDay => 24 * 60 * MINUTE_NS,
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
                 reduced in order to run successfully. {HELP}"
            );
        };
        write!(
            f,
            "Rate limit reached for {model} in organization {ORGANIZATION} on {kind}: \
             Limit {limit}, Used {used}, Requested {requested}. \
             Please try again in {}. {HELP}",
            go_duration(wait)
        )
    }
}

impl std::error::Error for Refusal {}

const HELP: &str = "Visit https://platform.openai.com/account/rate-limits to learn more.";
const MINUTE_NS: u64 = 60_000_000_000;
