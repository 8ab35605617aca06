//! What providers say of errors.

mod dimension;
pub(super) mod signs;

use std::fmt;

use compact_str::CompactString;
use http::HeaderMap;

use super::member;
use super::scanner::ErrorParts;
use crate::quota::Dimension;

/// What a provider says of an error.
///
/// The message may echo the prompt: `Debug` and `Display` show no more than 300 characters of it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ApiError {
    code: Option<CompactString>,
    kind: Option<CompactString>,
    message: Box<str>,
    /// Google's `details`: the id of the quota that was exceeded, and a reason.
    quota: Option<CompactString>,
    reason: Option<CompactString>,
}

impl ApiError {
    /// Reads an error body, of which at most the first KiB of a message is kept. `None` where it
    /// tells neither code, type nor message.
    ///
    /// ```
    /// # use tollgate::{provider::ApiError, quota::Dimension};
    /// let body = br#"{"error": {"type": "tokens", "code": "rate_limit_exceeded",
    ///     "message": "Rate limit reached on tokens per min (TPM): Limit 10000, Used 8782"}}"#;
    /// let error = ApiError::read(body).expect("an error");
    /// assert_eq!(error.code(), Some("rate_limit_exceeded"));
    /// assert_eq!(error.dimension(), Some(Dimension::Tokens));
    /// ```
    pub fn read(body: &[u8]) -> Option<Self> {
        let known = ErrorParts::read(body);
        let mut error = known.or_else(|| Self::new("", "", text(body, OTHER_MESSAGES)?))?;
        // Of several quotas, that of the longest window: the others pass sooner.
        let quotas = || member::values(body, "quotaId");
        let long = quotas().find(|quota| quota.contains("PerDay"));
        error.quota = long.or(quotas().next()).and_then(some);
        error.reason = text(body, &["reason"]).and_then(some);
        Some(error)
    }

    /// What AWS says in a header of the error's type.
    pub(super) fn with_kind_of(mut self, headers: &HeaderMap) -> Self {
        let named = headers.get("x-amzn-errortype").and_then(|name| name.to_str().ok());
        if let (None, Some(name)) = (&self.kind, named) {
            self.kind = some(exception(name));
        }
        self
    }

    pub(super) fn new(code: &str, kind: &str, message: &str) -> Option<Self> {
        let (code, kind) = (some(code), some(exception(kind)));
        let error = Self { code, kind, message: message.into(), ..Self::default() };
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

    /// The id of the quota that was exceeded, where Google names it:
    /// `GenerateRequestsPerDayPerProjectPerModel-FreeTier`.
    pub fn quota(&self) -> Option<&str> {
        self.quota.as_deref()
    }

    /// What the limit counts that the error names; `None` where it doesn't tell. The amounts are in
    /// the headers, if anywhere.
    pub fn dimension(&self) -> Option<Dimension> {
        dimension::of(self)
    }

    /// All that is machine-readable.
    fn signs(&self) -> impl Iterator<Item = &str> {
        [self.code(), self.kind(), self.reason.as_deref()].into_iter().flatten()
    }
}

impl fmt::Debug for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiError")
            .field("code", &self.code)
            .field("kind", &self.kind)
            .field("quota", &self.quota)
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

/// The first of these members in a body.
fn text<'b>(body: &'b [u8], names: &[&str]) -> Option<&'b str> {
    names.iter().find_map(|name| member::values(body, name).next())
}

/// What is kept of a text that should be a name.
fn some(text: &str) -> Option<CompactString> {
    let end = text.char_indices().nth(LONGEST_SIGN).map_or(text.len(), |(end, _)| end);
    (!text.is_empty()).then(|| text[..end].into())
}

/// The bare name of an AWS exception: `aws.protocoltests#Throttled:http://internal` is `Throttled`.
fn exception(name: &str) -> &str {
    let name = name.split(':').next().unwrap_or(name);
    name.rsplit('#').next().unwrap_or(name)
}

/// The message up to the last whole character within the bound.
fn shown(message: &str) -> &str {
    message.char_indices().nth(SHOWN).map_or(message, |(end, _)| &message[..end])
}

/// Characters of a message that are shown.
const SHOWN: usize = 300;

/// Longer than any id of a quota, in characters.
const LONGEST_SIGN: usize = 200;

/// Where a message may stand besides where all others put it: AWS; validation errors of FastAPI.
const OTHER_MESSAGES: &[&str] = &["Message", "msg"];
