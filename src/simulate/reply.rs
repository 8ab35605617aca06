//! What the provider answers.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::headers::Headers;
use super::rejection::Rejection;

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: ReplyBody,
    /// From the arrival of the request to the end of the answer; the frames of a stream are
    /// spread over it evenly.
    pub latency: Duration,
    /// What was taken from the token limit; 0 unless admitted.
    pub charged: u64,
    /// What the model used; zero unless admitted.
    pub usage: Usage,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyBody {
    /// One JSON object.
    Json(Bytes),
    /// Server-sent events, each with the empty line that ends it.
    Stream(Vec<Bytes>),
}

/// Tokens of the prompt, and of all choices together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

impl Reply {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// An error, answered at once.
    pub(super) fn rejected(rejection: &Rejection, headers: Headers) -> Self {
        Self {
            status: rejection.status,
            headers,
            body: ReplyBody::Json(rejection.json().into()),
            latency: Duration::ZERO,
            charged: 0,
            usage: Usage::default(),
        }
        .with_content_type()
    }

    /// Adds the content type of the body.
    pub(super) fn with_content_type(mut self) -> Self {
        let content_type = match self.body {
            ReplyBody::Json(_) => "application/json",
            ReplyBody::Stream(_) => "text/event-stream; charset=utf-8",
        };
        self.headers.insert(0, ("content-type", content_type.to_owned()));
        self
    }
}

impl ReplyBody {
    /// The whole body: the object, or all frames.
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Json(json) => json.clone(),
            Self::Stream(frames) => frames.concat().into(),
        }
    }
}
