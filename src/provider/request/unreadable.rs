use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// A request that can't be read for certain: two servers might see two models in it, or more than one
/// size. It says which part of the request is wrong, why, and what to do, and repeats nothing of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRequest {
    part: &'static str,
    why: Cow<'static, str>,
}

impl UnreadableRequest {
    /// The part that is wrong: `body`, `path`, the name of a header, or the field `model`.
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
            true => Self::body("its JSON breaks off; send all of it"),
            false => Self::body(format!("it is not JSON: {error}; write it as RFC 8259 has it")),
        }
    }
}

impl fmt::Display for UnreadableRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.part, self.why)
    }
}

impl Error for UnreadableRequest {}
