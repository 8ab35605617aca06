use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::fields::{Fields, LIMIT, POLICY, RefusedCost, levels};
use super::policies::PolicyCache;
use super::text::{header, member, number, plain_member};
use crate::engine::Wait;
use crate::limiter::{AcquireError, Code, Limiter, Refused};
use crate::middleware::ScopeKey;
use crate::quota::{Cost, Dimension};
use paceline_limiter::seam;

/// The status and the members of the problem document for a refused request.
struct Problem<'a> {
    status: StatusCode,
    code: &'static str,
    dimension: Option<&'a Dimension>,
    /// The key whose limit refused the request.
    key: Option<&'a str>,
    /// The wait in seconds, rounded up; `None` if a retry cannot succeed.
    retry_after: Option<u64>,
}

/// Returns the response to a request that the limiter has refused.
///
/// Status, header fields and problem document are those of [`Respond`](super::Respond), for services
/// that call the limiter directly. The response doesn't name the limits of a key created by
/// [`ScopeKey::new`].
pub fn refusal(
    limiter: &Limiter,
    keys: &[ScopeKey],
    cost: &Cost,
    error: &AcquireError,
) -> Response<Bytes> {
    response(limiter, keys, cost, error, None)
}

/// Appends the fields `RateLimit-Policy` and `RateLimit` of `keys` to the headers of a response.
pub fn append_headers(limiter: &Limiter, keys: &[ScopeKey], headers: &mut HeaderMap) {
    Fields::new(keys, &levels(limiter, keys), None).append(headers);
}

/// Returns the response to a refused request. Uses `cache`, which layers have, for the policy texts.
pub(super) fn response(
    limiter: &Limiter,
    keys: &[ScopeKey],
    cost: &Cost,
    error: &AcquireError,
    cache: Option<&PolicyCache>,
) -> Response<Bytes> {
    let problem = Problem::of(error);
    let looked_up;
    let levels = match error.refused().and_then(seam::levels) {
        Some(levels) => levels,
        None => {
            looked_up = levels(limiter, keys);
            &looked_up[..]
        }
    };
    let fields = Fields::new(keys, levels, cache);
    // A single allocation holds all parts.
    let mut text = Vec::with_capacity(CAPACITY);
    fields.write_limits(&mut text, Some(RefusedCost { cost, seconds: problem.retry_after }));
    let limits = text.len();
    problem.retry_after.into_iter().for_each(|seconds| number(&mut text, seconds));
    let retry_after = text.len();
    problem.write(&mut text, keys, cost, &fields);

    let text = Bytes::from(text);
    let mut response = Response::new(text.slice(retry_after..));
    *response.status_mut() = problem.status;
    let headers = response.headers_mut();
    headers.reserve(4);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    let (limits, retry_after) = (text.slice(..limits), text.slice(limits..retry_after));
    let values =
        [(POLICY, fields.policy()), (LIMIT, header(limits)), (RETRY_AFTER, header(retry_after))];
    for (name, value) in values {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    response
}

impl<'a> Problem<'a> {
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
            _ => Self::new(StatusCode::SERVICE_UNAVAILABLE, "refused"),
        }
    }

    fn new(status: StatusCode, code: &'static str) -> Self {
        Self { status, code, dimension: None, key: None, retry_after: None }
    }

    fn refused(refused: &'a Refused) -> Self {
        let status = match refused.code {
            // The cause is the server, not the client.
            Code::TooManyKeys | Code::Unavailable | Code::Closed => StatusCode::SERVICE_UNAVAILABLE,
            Code::MissingLimit | Code::UnknownPrice => StatusCode::UNPROCESSABLE_ENTITY,
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
        let is_refusing = |key: &&ScopeKey| Some(key.as_str()) == self.key;
        let key = keys.iter().find(is_refusing);
        let of_client = key.filter(|key| key.is_of_client());
        let is_unknown = of_client.is_some() && self.code == Code::UnknownModel.as_str();
        plain_member(text, "code", if is_unknown { UNKNOWN_KEY } else { self.code });
        if let Some(key) = of_client.filter(|key| is_unknown || key.shown().is_none()) {
            member(text, "scope", key.name());
        }
        if let Some(dimension) = self.dimension {
            member(text, "dimension", dimension.as_str());
        }
        if let Some(key) = key.and_then(ScopeKey::shown) {
            member(text, "key", key);
        }
        if exceeded {
            text.extend_from_slice(b",\"violated-policies\":[");
            fields.write_violated(text, cost);
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

/// The problem type of RFC 9457 that adds no meaning to the status.
const BLANK: &[u8] = b"{\"type\":\"about:blank\",\"title\":\"";

/// The code of a refusal because no quota covers the key of a client or tenant.
const UNKNOWN_KEY: &str = "unknown_key";

/// The wait in seconds if it depends on requests in flight.
const UNKNOWN: u64 = 1;

/// The length of a refusal by three limits, in bytes.
const CAPACITY: usize = 512;
