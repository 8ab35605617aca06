//! Errors of providers.

pub(super) mod codes;
mod rules;

use std::fmt;

use compact_str::CompactString;
use http::HeaderMap;

pub use rules::ErrorRules;

use crate::json_member;

/// An error as a provider states it.
///
/// The message may echo the prompt: `Debug` and `Display` show no more than 300 characters of it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ApiError {
    code: Option<CompactString>,
    kind: Option<CompactString>,
    message: Box<str>,
    /// The id of the quota that was exceeded, from Google's `details`.
    quota: Option<CompactString>,
    /// The reason, from Google's `details`.
    reason: Option<Box<str>>,
    /// The JSON of an error in a success.
    details: Box<[u8]>,
}

impl ApiError {
    /// Sets the quota and the reason that this JSON states.
    pub(super) fn naming(mut self, json: &[u8]) -> Self {
        // Of several quotas the one of the longest window counts: it resets last.
        let quotas = || json_member::values(json, "quotaId");
        let long = quotas().find(|quota| quota.contains("PerDay"));
        self.quota = long.or(quotas().next()).and_then(name);
        self.reason = json_member::values(json, "reason").next().and_then(name).map(Into::into);
        self
    }

    /// Sets the type from AWS's header, if the body states none.
    pub(super) fn with_kind_from(mut self, headers: &HeaderMap) -> Self {
        let named = headers.get("x-amzn-errortype").and_then(|name| name.to_str().ok());
        if let (None, Some(exception_name)) = (&self.kind, named) {
            self.kind = name(exception(exception_name));
        }
        self
    }

    pub(super) fn new(code: &str, kind: &str, message: &str) -> Option<Self> {
        let (code, kind) = (name(code), name(exception(kind)));
        let error = Self { code, kind, message: message.into(), ..Self::default() };
        let has_content = error.code.is_some() || error.kind.is_some() || !message.is_empty();
        has_content.then_some(error)
    }

    /// Returns the machine-readable code: `rate_limit_exceeded`.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Returns the type: `insufficient_quota`, `tokens`, `server_error`.
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// Returns the whole message, which may hold parts of the prompt.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the id of the quota that was exceeded, if Google names it:
    /// `GenerateRequestsPerDayPerProjectPerModel-FreeTier`.
    pub fn quota(&self) -> Option<&str> {
        self.quota.as_deref()
    }

    /// Sets the JSON of an error in a success.
    pub(super) fn with_details(self, json: &[u8]) -> Self {
        Self { details: json.into(), ..self.naming(json) }
    }

    /// Returns the JSON of an error in a success, which may be cut off.
    pub(super) fn details(&self) -> &[u8] {
        &self.details
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.message.len() + self.details.len()
    }

    /// Returns the machine-readable code, type and reason.
    pub(crate) fn codes(&self) -> impl Iterator<Item = &str> {
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
            Some(code) if self.message.is_empty() => f.write_str(code),
            Some(code) => write!(f, "{code}: {}", shown(&self.message)),
            None => f.write_str(shown(&self.message)),
        }
    }
}

impl std::error::Error for ApiError {}

/// Returns the text, cut to the length of a name; `None` if it is empty.
fn name(text: &str) -> Option<CompactString> {
    let end = text.char_indices().nth(MAX_NAME).map_or(text.len(), |(end, _)| end);
    (!text.is_empty()).then(|| text[..end].into())
}

/// Returns the bare name of an AWS exception: `Throttled` for
/// `aws.protocoltests#Throttled:http://internal`.
fn exception(name: &str) -> &str {
    let name = name.split(':').next().unwrap_or(name);
    name.rsplit('#').next().unwrap_or(name)
}

/// Returns the start of a message, cut between characters.
fn shown(message: &str) -> &str {
    message.char_indices().nth(SHOWN).map_or(message, |(end, _)| &message[..end])
}

/// Characters of a message that are shown.
const SHOWN: usize = 300;

/// Characters of a code, type or quota id that are kept; known ones are shorter.
const MAX_NAME: usize = 200;
