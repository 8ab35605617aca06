//! What the provider answers.

use std::time::Duration;

use bytes::Bytes;

use super::api_error::ApiError;
use super::format::Format;
use crate::usage::SimulatedUsage;

/// Names and values of headers; the names are lower case.
pub(super) type Headers = Vec<(&'static str, String)>;

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimulatedReply {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: ReplyBody,
    /// From the arrival of the request to the end of the answer; the frames of a stream are
    /// spread over it evenly.
    pub latency: Duration,
    /// What is taken from the token limit, now and until the answer ends; 0 unless admitted.
    pub charged: u64,
    /// What the model used; zero unless admitted.
    pub usage: SimulatedUsage,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyBody {
    /// One JSON object.
    Json(Bytes),
    /// Server-sent events, each with the empty line that ends it, or the elements of a JSON array.
    Stream(Vec<Bytes>),
}

impl SimulatedReply {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// An error that answers a request to `path`, at once.
    pub(super) fn from_error(
        format: &dyn Format,
        path: &str,
        api_error: &ApiError,
        id: &str,
    ) -> Self {
        let body = format.error(path, api_error, id).to_string();
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.extend(api_error.headers.iter().cloned());
        Self {
            status: api_error.status,
            headers,
            body: ReplyBody::Json(body.into()),
            latency: Duration::ZERO,
            charged: 0,
            usage: SimulatedUsage::default(),
        }
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
