use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// The error of an ambiguous request, in which servers might read different models or sizes. It states
/// the wrong part, the reason and the fix, and repeats no content of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRequest {
    part: &'static str,
    why: Cow<'static, str>,
}

impl UnreadableRequest {
    /// Returns the wrong part: `body`, `path`, the name of a header, or the field `model`.
    pub fn part(&self) -> &'static str {
        self.part
    }

    pub(super) fn body(why: impl Into<Cow<'static, str>>) -> Self {
        Self { part: "body", why: why.into() }
    }

    pub(super) fn model(why: &'static str) -> Self {
        Self { part: "model", why: why.into() }
    }

    pub(super) fn path(why: &'static str) -> Self {
        Self { part: "path", why: why.into() }
    }

    pub(super) fn header(name: &'static str, why: &'static str) -> Self {
        Self { part: name, why: why.into() }
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
        write!(f, "`{}`: {}", self.part, self.why)
    }
}

impl Error for UnreadableRequest {}
