use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;

use super::scope_key::ScopeKey;
use crate::Timestamp;
use crate::limiter::Permit;
use crate::provider::ApiError;
use crate::quota::{Cost, Key, Usage};

/// A handle through which a caller observes one request: insert a clone into the extensions of an
/// `http::Request`, and read the [`Facts`] after the response body has ended.
///
/// A `reqwest::Request` doesn't expose its extensions: send `http::Request<reqwest::Body>`, with
/// `.filter(|r: http::Request<reqwest::Body>| reqwest::Request::try_from(r))` (tower's feature
/// `filter`) between the layer and the client.
///
/// ```
/// use paceline::middleware::Journey;
/// let journey = Journey::new();
/// let request = http::Request::post("/v1/embeddings").extension(journey.clone()).body(())?;
/// assert_eq!(journey.facts().usage, None);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Journey(Arc<Mutex<Facts>>);

/// The facts of a request that are known so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The key that the request is charged to.
    pub key: Key,
    /// The reserved cost.
    pub reserved: Option<Cost>,
    /// The time at which the request was admitted.
    pub granted_at: Option<Timestamp>,
    /// The time that the request was queued before admission.
    pub waited: Duration,
    /// The usage that the response reported.
    pub usage: Option<Usage>,
    /// The content encoding of a response body whose usage the layer couldn't read, so that the
    /// reserved cost was charged. `None` if the inner client decompresses responses.
    pub unread: Option<String>,
    /// The cost that was charged, set when the reservation is settled.
    pub charged: Option<Cost>,
    /// The status of the response.
    pub status: Option<StatusCode>,
    /// An error in the body of a successful response; the error of a 429 isn't recorded.
    pub error: Option<ApiError>,
    /// The facts of the earlier attempts, if [`RateLimitLayer::retry`](super::RateLimitLayer::retry)
    /// has retried the request. All other fields describe the last attempt.
    pub earlier: Vec<Facts>,
}

impl Facts {
    /// Returns the number of admitted attempts, including earlier ones.
    pub fn tries(&self) -> usize {
        self.earlier.len() + usize::from(self.granted_at.is_some())
    }
}

impl Journey {
    /// Creates a journey with empty facts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the facts that are known so far.
    pub fn facts(&self) -> Facts {
        self.0.lock().clone()
    }

    /// Records that the request was admitted under this key; `arrived` is the time of its arrival, or
    /// `None` if it was admitted immediately.
    #[cold]
    pub(super) fn begin(
        &self,
        key: Option<&ScopeKey>,
        permit: &Permit,
        arrived: Option<Timestamp>,
    ) {
        let granted_at = permit.granted_at();
        let waited = granted_at - arrived.unwrap_or(granted_at);
        self.write(|facts| {
            *facts = Facts {
                key: key.map(|key| key.as_str().into()).unwrap_or_default(),
                reserved: Some(permit.cost().clone()),
                granted_at: Some(granted_at),
                waited,
                earlier: std::mem::take(&mut facts.earlier),
                ..Facts::default()
            };
        });
    }

    /// Moves the current attempt to the earlier ones and starts a new one.
    pub(super) fn begin_attempt(&self) {
        self.write(|facts| {
            let earlier = std::mem::take(&mut facts.earlier);
            let last = std::mem::replace(facts, Facts { earlier, ..Facts::default() });
            facts.earlier.push(last);
        });
    }

    /// Discards an attempt that was not made, so that the one before it is the last again.
    pub(super) fn discard_attempt(&self) {
        self.write(|facts| {
            if let Some(last) = facts.earlier.pop() {
                let earlier = std::mem::take(&mut facts.earlier);
                *facts = Facts { earlier, ..last };
            }
        });
    }

    pub(super) fn write(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.0.lock());
    }
}
