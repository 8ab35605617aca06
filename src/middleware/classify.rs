use compact_str::CompactString;

use super::journey::Journey;
use crate::quota::Cost;

/// What a request is, to the limiter.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Classified {
    /// The key whose quota it falls under.
    pub key: CompactString,
    /// What to reserve for it.
    pub cost: Cost,
    /// The least that its tokens are charged, whatever the response uses.
    pub floor: u64,
    /// When to give up, in nanoseconds since the epoch.
    pub deadline: Option<u64>,
    /// Where to write down how it went.
    pub journey: Option<Journey>,
}

impl Classified {
    /// A request of this key and cost.
    pub fn new(key: impl Into<CompactString>, cost: Cost) -> Self {
        Self { key: key.into(), cost, floor: 0, deadline: None, journey: None }
    }
}

/// Says what a request is. Closures do: `|request: &R| Classified::new("key", Cost::new())`.
pub trait Classify<Request> {
    /// The request's key and cost. `key` is the layer's own, which wins over what the request says.
    fn classify(&self, request: &Request, key: Option<&str>) -> Classified;
}

impl<F, Request> Classify<Request> for F
where
    F: Fn(&Request) -> Classified,
{
    fn classify(&self, request: &Request, key: Option<&str>) -> Classified {
        let mut classified = self(request);
        if let Some(key) = key {
            classified.key = key.into();
        }
        classified
    }
}
