use super::scope_key::ScopeKey;
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// What one request asks for, whatever it would be taken for: put it into the extensions of an
/// `http::Request`.
///
/// ```
/// use tollgate::middleware::Ask;
/// use tollgate::quota::Cost;
/// let ask = Ask::new().key("gpt-4o-mini").cost(Cost::new().tokens(1_200));
/// let request = http::Request::post("/v1/chat/completions").extension(ask).body(())?;
/// # Ok::<(), http::Error>(())
/// ```
///
/// [`Http`](super::Http) reads it, and so does server mode. A closure that classifies requests does
/// so with [`Classified::with_extensions`](super::Classified::with_extensions). No one can ask over
/// the network: extensions don't travel.
#[derive(Debug, Clone, Default)]
#[must_use = "it does nothing until it is in a request's extensions"]
pub struct Ask {
    pub(super) key: Option<ScopeKey>,
    pub(super) cost: Option<Cost>,
    pub(super) deadline: Option<Timestamp>,
}

impl Ask {
    /// Asks for nothing.
    pub const fn new() -> Self {
        Self { key: None, cost: None, deadline: None }
    }

    /// Charges the request to this key, in the place of the layer's or of the one that it names. Its
    /// other scopes stay.
    pub fn key(mut self, key: impl Into<ScopeKey>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Reserves this for the request, and no more: what its response says counts as before.
    pub fn cost(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Waits until this time by the limiter's clock, however long the
    /// layer would wait.
    pub fn deadline(mut self, time: Timestamp) -> Self {
        self.deadline = Some(time);
        self
    }
}
