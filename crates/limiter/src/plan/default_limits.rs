use std::fmt;
use std::sync::Arc;

use super::plan::{DEFAULT_ID, Plan};
use crate::quota::{Margin, Quota};

/// Limits for keys that no quota covers, prepared once for all of them: for a service that gives each of
/// its clients the same limit. See
/// [`Acquire::default_limits`](crate::limiter::Acquire::default_limits).
///
/// The limiter's share and margin don't apply, since these limits protect the caller's own service.
#[derive(Clone)]
pub struct DefaultLimits(pub(crate) Arc<Plan>);

impl DefaultLimits {
    /// Creates limits for a version of a limiter's plans.
    pub(crate) fn in_version(quota: &Quota, version: u32) -> Self {
        Self(Arc::new(Plan::new(quota, None, Margin::NONE, DEFAULT_ID, version).unnamed()))
    }

    /// Returns the same limits for keys that the caller's configuration names. Such keys are always
    /// accepted, like keys that a quota names exactly: [`max_keys`](crate::limiter::Builder::max_keys) and
    /// a [`KeyBudget`](crate::limiter::KeyBudget) don't apply to them.
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
