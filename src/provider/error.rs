use std::fmt;

use compact_str::CompactString;

use super::scanner::ErrorParts;

/// What a provider says of an error.
///
/// The message may echo the prompt: `Debug` and `Display` show no more than 300 characters of it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ApiError {
    code: Option<CompactString>,
    kind: Option<CompactString>,
    message: Box<str>,
}

impl ApiError {
    /// Reads an error body, of which at most the first KiB of a message is kept. `None` where it
    /// tells neither code, type nor message.
    pub fn read(body: &[u8]) -> Option<Self> {
        ErrorParts::read(body)
    }

    pub(super) fn new(code: &str, kind: &str, message: &str) -> Option<Self> {
        let some = |text: &str| (!text.is_empty()).then(|| text.into());
        let error = Self { code: some(code), kind: some(kind), message: message.into() };
        let says_something = error.code.is_some() || error.kind.is_some() || !message.is_empty();
        says_something.then_some(error)
    }

    /// The machine-readable code: `rate_limit_exceeded`.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The `type`: `insufficient_quota`, `tokens`, `server_error`.
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// The text for people, whole; it may hold parts of the prompt.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether code or type is one of these.
    fn is_any(&self, signs: &[&str]) -> bool {
        [self.code(), self.kind()].into_iter().flatten().any(|sign| signs.contains(&sign))
    }
}

impl fmt::Debug for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiError")
            .field("code", &self.code)
            .field("kind", &self.kind)
            .field("message", &shown(&self.message))
            .finish()
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code().or(self.kind()) {
            Some(sign) if self.message.is_empty() => f.write_str(sign),
            Some(sign) => write!(f, "{sign}: {}", shown(&self.message)),
            None => f.write_str(shown(&self.message)),
        }
    }
}

impl std::error::Error for ApiError {}

/// Whether every request of the account fails like this: no credit, a spending limit, a bad key.
pub(super) fn is_account_wide(error: &ApiError) -> bool {
    let spent = |sign: &str| sign.ends_with("_spend_limit_exceeded");
    error.is_any(ACCOUNT_WIDE) || [error.code(), error.kind()].into_iter().flatten().any(spent)
}

/// Whether the error, whatever its status, is one that passes.
pub(super) fn is_transient(error: &ApiError) -> bool {
    error.is_any(TRANSIENT)
}

/// The message up to the last whole character within the bound.
fn shown(message: &str) -> &str {
    message.char_indices().nth(SHOWN).map_or(message, |(end, _)| &message[..end])
}

/// Characters of a message that are shown.
const SHOWN: usize = 300;

const ACCOUNT_WIDE: &[&str] = &[
    "insufficient_quota",
    "credit_balance_exhausted",
    "billing_hard_limit_reached",
    "billing_not_active",
    "account_deactivated",
    "invalid_api_key",
    "authentication_error",
];

const TRANSIENT: &[&str] = &[
    "rate_limit_exceeded",
    "rate_limit_error",
    "slow_down",
    "server_is_overloaded",
    "overloaded_error",
    "server_error",
    "internal_server_error",
    "api_error",
    "timeout",
];
