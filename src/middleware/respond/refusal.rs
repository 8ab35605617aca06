use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::fields::{Fields, LIMIT, POLICY, Refusal, header};
use crate::engine::Wait;
use crate::limiter::{AcquireError, Code, Limiter, Refused};
use crate::middleware::{Classified, Key};
use crate::quota::{Cost, Dimension};

/// Why a request is refused, as its client is told.
struct Verdict<'a> {
    status: StatusCode,
    code: &'static str,
    dimension: Option<&'a Dimension>,
    /// The key that binds.
    key: Option<&'a str>,
    /// In seconds, rounded up; `None` if it is no use to come back.
    retry_after: Option<u64>,
}

/// What a client is told whose request the limiter has refused: status, fields and problem document as
/// [`Respond`](super::Respond) answers them, for who asks the limiter itself. No limit of a key that was
/// made by [`Key::new`] is named.
pub fn refusal(
    limiter: &Limiter,
    keys: &[Key],
    cost: &Cost,
    error: &AcquireError,
) -> Response<Bytes> {
    let mut keys = keys.iter().cloned();
    let first = keys.next().unwrap_or_else(|| Key::new(""));
    let classified = keys.fold(Classified::new(first, cost.clone()), Classified::scope);
    answer(limiter, &classified, error)
}

/// Adds the fields `RateLimit-Policy` and `RateLimit` of these keys to an answer.
pub fn describe(limiter: &Limiter, keys: &[Key], headers: &mut HeaderMap) {
    Fields::of(limiter, keys, limiter.now()).append(headers);
}

/// The answer to a request that was refused.
pub(super) fn answer(
    limiter: &Limiter,
    classified: &Classified,
    error: &AcquireError,
) -> Response<Bytes> {
    let verdict = Verdict::of(error);
    let now = error.refused().map_or_else(|| limiter.now(), |refused| refused.asked_at);
    let fields = Fields::of(limiter, classified.keys(), now);
    // One allocation for all parts.
    let mut text = Vec::with_capacity(ROOM);
    fields.policies(&mut text);
    let policies = text.len();
    let refusal = Refusal { cost: &classified.cost, seconds: verdict.retry_after };
    fields.limits(&mut text, Some(refusal));
    let limits = text.len();
    number(&mut text, verdict.retry_after);
    let retry_after = text.len();
    verdict.write(&mut text, classified, &fields);

    let text = Bytes::from(text);
    let mut response = Response::new(text.slice(retry_after..));
    *response.status_mut() = verdict.status;
    let headers = response.headers_mut();
    headers.reserve(4);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    let told =
        [(POLICY, 0..policies), (LIMIT, policies..limits), (RETRY_AFTER, limits..retry_after)];
    for (name, part) in told {
        if let Some(value) = header(text.slice(part)) {
            headers.insert(name, value);
        }
    }
    response
}

impl<'a> Verdict<'a> {
    fn of(error: &'a AcquireError) -> Self {
        match error {
            AcquireError::Closed => Self::new(StatusCode::SERVICE_UNAVAILABLE, "closed"),
            AcquireError::QueueFull { key, .. } => Self {
                key: Some(key),
                retry_after: Some(UNKNOWN),
                ..Self::new(StatusCode::TOO_MANY_REQUESTS, "queue_full")
            },
            AcquireError::Removed { key } => Self {
                key: Some(key),
                ..Self::new(StatusCode::TOO_MANY_REQUESTS, Code::UnknownModel.as_str())
            },
            AcquireError::Refused(refused) | AcquireError::DeadlineExceeded { refused, .. } => {
                Self::refused(refused)
            }
        }
    }

    fn new(status: StatusCode, code: &'static str) -> Self {
        Self { status, code, dimension: None, key: None, retry_after: None }
    }

    fn refused(refused: &'a Refused) -> Self {
        let status = match refused.code {
            // It isn't the client's doing.
            Code::TooManyKeys | Code::Unavailable | Code::Closed => StatusCode::SERVICE_UNAVAILABLE,
            Code::MissingLimit => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::TOO_MANY_REQUESTS,
        };
        let seconds = |wait: Duration| wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self {
            dimension: refused.dimension.as_ref(),
            key: Some(&refused.key),
            retry_after: match refused.wait {
                Wait::Never => None,
                Wait::Unknown => Some(UNKNOWN),
                Wait::At(_) => refused.retry_after().map(|wait| seconds(wait).max(1)),
            },
            ..Self::new(status, refused.code.as_str())
        }
    }

    /// Writes the problem document.
    fn write(&self, text: &mut Vec<u8>, classified: &Classified, fields: &Fields<'_>) {
        let exceeded = self.dimension.is_some() && self.status == StatusCode::TOO_MANY_REQUESTS;
        text.extend_from_slice(if exceeded { QUOTA_EXCEEDED } else { BLANK });
        if !exceeded {
            text.extend_from_slice(self.status.canonical_reason().unwrap_or_default().as_bytes());
        }
        text.extend_from_slice(b"\",\"status\":");
        text.extend_from_slice(self.status.as_str().as_bytes());
        string(text, "code", self.code);
        if let Some(dimension) = self.dimension {
            string(text, "dimension", dimension.as_str());
        }
        let binds = |key: &&Key| Some(key.as_str()) == self.key;
        if let Some(key) = classified.keys().iter().find(binds).and_then(|key| key.shown()) {
            string(text, "key", key);
        }
        if exceeded {
            text.extend_from_slice(b",\"violated-policies\":[");
            fields.violated(text, &classified.cost);
            text.push(b']');
        }
        if self.retry_after.is_some() {
            text.extend_from_slice(b",\"retry_after\":");
            number(text, self.retry_after);
        }
        text.push(b'}');
    }
}

fn string(text: &mut Vec<u8>, name: &str, value: &str) {
    text.extend_from_slice(b",\"");
    text.extend_from_slice(name.as_bytes());
    text.extend_from_slice(b"\":");
    serde_json::to_writer(text, value).expect("a vector takes any text");
}

fn number(text: &mut Vec<u8>, number: Option<u64>) {
    if let Some(number) = number {
        text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
}

const QUOTA_EXCEEDED: &[u8] =
    b"{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
    \"title\":\"Request cannot be satisfied as assigned quota has been exceeded";

/// RFC 9457: nothing more than what the status says.
const BLANK: &[u8] = b"{\"type\":\"about:blank\",\"title\":\"";

/// In seconds, for a wait that hangs on requests in flight.
const UNKNOWN: u64 = 1;

/// What a refusal by three limits takes, in bytes.
const ROOM: usize = 768;
