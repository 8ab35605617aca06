use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;

use super::scope_key::ScopeKey;
use crate::limiter::Permit;
use crate::provider::ApiError;
use crate::quota::{Cost, Key, Usage};
use crate::timestamp::Timestamp;

/// How one request went, for a caller who wants to know: put a clone into the extensions of an
/// `http::Request`, and read it when the response's body has ended.
///
/// A `reqwest::Request` keeps its extensions to itself: send `http::Request<reqwest::Body>`, with
/// `.filter(|r: http::Request<reqwest::Body>| reqwest::Request::try_from(r))` (tower's feature
/// `filter`) between the layer and the client.
///
/// ```
/// use tollgate::middleware::Journey;
/// let journey = Journey::new();
/// let request = http::Request::post("/v1/embeddings").extension(journey.clone()).body(())?;
/// assert_eq!(journey.facts().usage, None);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Journey(Arc<Mutex<Facts>>);

/// What is known of a request so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The key that it was charged to.
    pub key: Key,
    /// What was reserved for it.
    pub reserved: Option<Cost>,
    /// When it was let in.
    pub granted_at: Option<Timestamp>,
    /// How long it waited for that.
    pub waited: Duration,
    /// What its response reported.
    pub usage: Option<Usage>,
    /// The encoding in which its response passed through the layer, so that nobody could read its
    /// usage, and what was reserved counts. Where the client below decompresses there is none.
    pub unread: Option<String>,
    /// What it was charged in the end.
    pub charged: Option<Cost>,
    /// The status of its response.
    pub status: Option<StatusCode>,
    /// An error in the body of a success; never that of a 429.
    pub error: Option<ApiError>,
    /// How its earlier tries went, where it was sent again by
    /// [`RateLimitLayer::retry`](super::RateLimitLayer::retry): all else is of the last one.
    pub earlier: Vec<Facts>,
}

impl Facts {
    /// How often it was let in, the earlier tries included.
    pub fn tries(&self) -> usize {
        self.earlier.len() + usize::from(self.granted_at.is_some())
    }
}

impl Journey {
    /// A journey that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is known so far.
    pub fn facts(&self) -> Facts {
        self.0.lock().clone()
    }

    /// The request was admitted under this key; `arrived` is when it arrived, unless it was admitted immediately.
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

    /// It is tried once more.
    pub(super) fn begin_again(&self) {
        self.write(|facts| {
            let earlier = std::mem::take(&mut facts.earlier);
            let last = std::mem::replace(facts, Facts { earlier, ..Facts::default() });
            facts.earlier.push(last);
        });
    }

    /// That came to nothing: the try before it was the last.
    pub(super) fn take_back(&self) {
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
