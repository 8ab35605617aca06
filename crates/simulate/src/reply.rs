//! The reply of the provider to a request.

use std::time::Duration;

use bytes::Bytes;

use crate::usage::SimulatedUsage;

/// Headers with lowercase names.
pub(super) type Headers = Vec<(&'static str, String)>;

/// The reply to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimulatedReply {
    /// The HTTP status.
    pub status: u16,
    /// The headers, with lowercase names.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: ReplyBody,
    /// The time from the arrival of the request to the end of the reply; the frames of a stream are
    /// spread over it evenly.
    pub latency: Duration,
    /// The tokens charged to the token limit, until the end of the reply; 0 unless admitted.
    pub charged: u64,
    /// The cost in micro-dollars, if spending is limited; 0 unless admitted.
    pub spent: u64,
    /// The usage of the model; zero unless admitted.
    pub usage: SimulatedUsage,
}

/// The body of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyBody {
    /// One JSON object.
    Json(Bytes),
    /// Server-sent events, each with its terminating empty line, or the elements of a JSON array.
    Stream(Vec<Bytes>),
}

impl SimulatedReply {
    /// Returns the value of a header, by its lowercase name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

impl ReplyBody {
    /// Returns the whole body: the object, or all frames.
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Json(json) => json.clone(),
            Self::Stream(frames) => frames.concat().into(),
        }
    }
}
