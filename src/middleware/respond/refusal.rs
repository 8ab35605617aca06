use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::fields::{Fields, LIMIT, POLICY, Refusal, figures};
use super::policies::PolicyCache;
use super::text::{header, member, number, plain_member};
use crate::engine::Wait;
use crate::limiter::{AcquireError, Code, Limiter, Refused};
use crate::middleware::ScopeKey;
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
/// made by [`ScopeKey::new`] is named.
pub fn refusal(
    limiter: &Limiter,
    keys: &[ScopeKey],
    cost: &Cost,
    error: &AcquireError,
) -> Response<Bytes> {
    answer(limiter, keys, cost, error, None)
}

/// Adds the fields `RateLimit-Policy` and `RateLimit` of these keys to an answer.
pub fn describe(limiter: &Limiter, keys: &[ScopeKey], headers: &mut HeaderMap) {
    Fields::new(keys, &figures(limiter, keys), None).append(headers);
}

/// Answers a request that was refused; a layer has a cache of texts.
pub(super) fn answer(
    limiter: &Limiter,
    keys: &[ScopeKey],
    cost: &Cost,
    error: &AcquireError,
    cache: Option<&PolicyCache>,
) -> Response<Bytes> {
    let verdict = Verdict::of(error);
    let looked_up;
    let figures = match error.refused().and_then(Refused::figures) {
        Some(figures) => figures,
        None => {
            looked_up = figures(limiter, keys);
            &looked_up[..]
        }
    };
    let fields = Fields::new(keys, figures, cache);
    // One allocation for all parts.
    let mut text = Vec::with_capacity(ROOM);
    fields.limits(&mut text, Some(Refusal { cost, seconds: verdict.retry_after }));
    let limits = text.len();
    verdict.retry_after.into_iter().for_each(|seconds| number(&mut text, seconds));
    let retry_after = text.len();
    verdict.write(&mut text, keys, cost, &fields);

    let text = Bytes::from(text);
    let mut response = Response::new(text.slice(retry_after..));
    *response.status_mut() = verdict.status;
    let headers = response.headers_mut();
    headers.reserve(4);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    let (limits, retry_after) = (text.slice(..limits), text.slice(limits..retry_after));
    let told =
        [(POLICY, fields.policy()), (LIMIT, header(limits)), (RETRY_AFTER, header(retry_after))];
    for (name, value) in told {
        if let Some(value) = value {
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
    fn write(&self, text: &mut Vec<u8>, keys: &[ScopeKey], cost: &Cost, fields: &Fields<'_>) {
        let exceeded = self.dimension.is_some() && self.status == StatusCode::TOO_MANY_REQUESTS;
        text.extend_from_slice(if exceeded { QUOTA_EXCEEDED } else { BLANK });
        if !exceeded {
            text.extend_from_slice(self.status.canonical_reason().unwrap_or_default().as_bytes());
        }
        text.extend_from_slice(b"\",\"status\":");
        text.extend_from_slice(self.status.as_str().as_bytes());
        plain_member(text, "code", self.code);
        if let Some(dimension) = self.dimension {
            member(text, "dimension", dimension.as_str());
        }
        let binds = |key: &&ScopeKey| Some(key.as_str()) == self.key;
        if let Some(key) = keys.iter().find(binds).and_then(|key| key.shown()) {
            member(text, "key", key);
        }
        if exceeded {
            text.extend_from_slice(b",\"violated-policies\":[");
            fields.violated(text, cost);
            text.push(b']');
        }
        if let Some(seconds) = self.retry_after {
            text.extend_from_slice(b",\"retry_after\":");
            number(text, seconds);
        }
        text.push(b'}');
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
const ROOM: usize = 512;
