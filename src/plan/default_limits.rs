use std::fmt;
use std::sync::Arc;

use super::plan::{DEFAULT_ROW, Plan};
use crate::quota::{Margin, Quota};

/// Limits for keys that no quota names, made ready once for all of them: those of a service that gives
/// each of its clients the same limit. See
/// [`Acquire::default_limits`](crate::limiter::Acquire::default_limits).
///
/// They count whole, whatever the limiter's share, and without a margin: they guard the caller's own
/// service.
#[derive(Clone)]
pub struct DefaultLimits(pub(crate) Arc<Plan>);

impl DefaultLimits {
    /// These limits, in a version of the plans of a limiter.
    pub(crate) fn in_version(quota: &Quota, version: u32) -> Self {
        Self(Arc::new(Plan::new(quota, None, Margin::NONE, (DEFAULT_ROW, version)).unnamed()))
    }

    /// The same limits for keys that the caller's configuration names: such keys always have a place,
    /// as those that a quota names exactly, whatever [`max_keys`](crate::limiter::Builder::max_keys) and a
    /// [`KeyBudget`](crate::limiter::KeyBudget) say.
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
