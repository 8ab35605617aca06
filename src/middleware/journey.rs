use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;
use parking_lot::Mutex;

use crate::provider::ApiError;
use crate::quota::{Cost, Usage};

/// How one request went, for a caller who wants to know: put a clone into the extensions of an
/// `http::Request`, and read it when the response's body has ended.
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
    pub key: CompactString,
    /// What was reserved for it.
    pub reserved: Option<Cost>,
    /// When it was let in, in nanoseconds since the epoch.
    pub granted_at: Option<u64>,
    /// How long it waited for that.
    pub waited: Duration,
    /// What its response reported.
    pub usage: Option<Usage>,
    /// What it was charged in the end.
    pub charged: Option<Cost>,
    /// An error in the body of a success.
    pub error: Option<ApiError>,
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

    pub(super) fn write(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.0.lock());
    }
}
