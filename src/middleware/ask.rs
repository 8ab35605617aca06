use super::scope_key::ScopeKey;
use crate::Timestamp;
use crate::limiter::Priority;
use crate::quota::{Cost, Key};
use paceline_limiter::seam::OwnStanding;

/// The overrides of one request's key, cost and deadline. Insert it into the extensions of an
/// `http::Request`.
///
/// ```
/// use paceline::middleware::Ask;
/// use paceline::quota::Cost;
/// let ask = Ask::new().key("gpt-4o-mini").cost(Cost::new().tokens(1_200));
/// let request = http::Request::post("/v1/chat/completions").extension(ask).body(())?;
/// # Ok::<(), http::Error>(())
/// ```
///
/// [`Http`](super::Http) and server mode read it. A closure that classifies requests applies it with
/// [`Classified::with_extensions`](super::Classified::with_extensions). Remote clients cannot set it,
/// since extensions are not sent over the network.
#[derive(Debug, Clone, Default)]
#[must_use = "an `Ask` does nothing until it is inserted into a request's extensions"]
pub struct Ask {
    pub(super) key: Option<ScopeKey>,
    pub(super) cost: Option<Cost>,
    pub(super) deadline: Option<Timestamp>,
    pub(super) standing: OwnStanding,
}

impl Ask {
    /// Creates an `Ask` that overrides nothing.
    pub const fn new() -> Self {
        let standing = OwnStanding { priority: None, flow: None };
        Self { key: None, cost: None, deadline: None, standing }
    }

    /// Charges the request to this key instead of the layer's key or the model that the request names.
    /// Its other scopes are kept.
    pub fn key(mut self, key: impl Into<ScopeKey>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Reserves this cost instead of the estimate. The usage that the response reports still settles
    /// the reservation.
    pub fn cost(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Gives the request this priority in place of the layer's.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.standing.priority = Some(priority);
        self
    }

    /// Counts the request as part of this flow, such as the user that it is for, in place of the layer's.
    pub fn flow(mut self, name: impl Into<Key>) -> Self {
        self.standing.flow = Some(name.into());
        self
    }

    /// Waits until this time on the limiter's clock, regardless of the layer's
    /// [`max_wait`](super::RateLimitLayer::max_wait).
    pub fn deadline(mut self, time: Timestamp) -> Self {
        self.deadline = Some(time);
        self
    }
}
