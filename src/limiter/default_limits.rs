use std::fmt;
use std::sync::Arc;

use super::limiter::Limiter;
use super::plan::{DEFAULT_ROW, Plan};
use crate::engine::Margin;
use crate::quota::Quota;

/// Limits for keys that no quota names, made ready once for all of them: those of a service that gives
/// each of its clients a limit, whoever they are. See
/// [`Acquire::default_limits`](super::Acquire::default_limits).
///
/// They count whole, whatever the limiter's share, and without a margin: whoever gives them guards
/// something of its own.
#[derive(Clone)]
pub struct DefaultLimits(pub(super) Arc<Plan>);

impl DefaultLimits {
    /// These limits, for requests to this limiter.
    pub fn new(limiter: &Limiter, quota: &Quota) -> Self {
        let made = (DEFAULT_ROW, limiter.core.version());
        Self(Arc::new(Plan::new(quota, None, Margin::NONE, made).unnamed()))
    }

    /// The same limits for keys that the caller's configuration names: such keys always have a place,
    /// as those that a quota names exactly, whatever [`max_keys`](super::Builder::max_keys) and a
    /// [`KeyBudget`](super::KeyBudget) say.
    #[must_use]
    pub fn for_named_keys(self) -> Self {
        Self(Arc::new(Arc::unwrap_or_clone(self.0).reserved()))
    }
}

impl fmt::Debug for DefaultLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.rules.iter().map(|rule| rule.limit())).finish()
    }
}
