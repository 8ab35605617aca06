//! A limit on spending.

use std::fmt;
use std::sync::Arc;

use super::usage::SimulatedUsage;

/// The name of an API, the model and its usage, to the cost in micro-dollars.
type CostFn = dyn Fn(&str, &str, &SimulatedUsage) -> Option<u64> + Send + Sync;

/// A limit on what the requests of all models of one API cost in any ten minutes, as Gemini has for a
/// project (<https://ai.google.dev/gemini-api/docs/rate-limits>, "Spend-based rate limits", 2026-11).
///
/// ```
/// use paceline_simulate::{Provider, Settings, SpendLimit};
/// // $10, and $2 per million tokens of every model.
/// let spend = SpendLimit::new(10_000_000, |_api, _model, usage| Some((usage.input + usage.output) * 2));
/// let provider = Provider::new(Settings::default().with_spend(spend));
/// ```
#[derive(Clone)]
pub struct SpendLimit {
    /// Micro-dollars; 0 is unlimited.
    pub(super) limit: u64,
    cost: Arc<CostFn>,
}

impl SpendLimit {
    /// Creates a limit in micro-dollars per ten minutes; 0 is unlimited.
    ///
    /// `cost` gets the API (`openai`, `anthropic` or `gemini`), the model and the usage of a request, and
    /// returns its cost in micro-dollars; `None` if the model has no price. Requests for such a model
    /// get the error for an unknown model.
    pub fn new(
        limit: u64,
        cost: impl Fn(&str, &str, &SimulatedUsage) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        Self { limit, cost: Arc::new(cost) }
    }

    /// Returns the cost of a request in micro-dollars; `None` if the model has no price.
    pub(super) fn cost(&self, api: &str, model: &str, usage: &SimulatedUsage) -> Option<u64> {
        (self.cost)(api, model, usage)
    }
}

impl fmt::Debug for SpendLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpendLimit").field("limit", &self.limit).finish_non_exhaustive()
    }
}
