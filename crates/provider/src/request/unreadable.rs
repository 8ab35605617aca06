use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// The error of an ambiguous request, in which servers might read different models or sizes. It states
/// the ambiguous part, the reason and the fix, and contains no content of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRequest {
    part: &'static str,
    reason: Cow<'static, str>,
}

impl UnreadableRequest {
    /// Returns the ambiguous part: `body`, `path`, the name of a header, or the field `model`.
    pub fn part(&self) -> &'static str {
        self.part
    }

    pub(super) fn body(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { part: "body", reason: reason.into() }
    }

    pub(super) fn model(reason: &'static str) -> Self {
        Self { part: "model", reason: reason.into() }
    }

    pub(super) fn path(reason: &'static str) -> Self {
        Self { part: "path", reason: reason.into() }
    }

    pub(super) fn header(name: &'static str, reason: &'static str) -> Self {
        Self { part: name, reason: reason.into() }
    }
}

impl From<serde_json::Error> for UnreadableRequest {
    fn from(error: serde_json::Error) -> Self {
        match error.is_eof() {
            true => Self::body("incomplete JSON; send all of it"),
            false => Self::body(format!("invalid JSON: {error}; send JSON by RFC 8259")),
        }
    }
}

impl fmt::Display for UnreadableRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.part, self.reason)
    }
}

impl Error for UnreadableRequest {}
