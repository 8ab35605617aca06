use std::fmt;
use std::sync::Arc;

use ::metrics::SharedString;
use compact_str::CompactString;

use super::labels::{Labels, OTHER};
use crate::limiter::WeakLimiter;

/// Says what a key is called in figures.
pub(super) type Naming = Arc<dyn Fn(&str) -> Option<CompactString> + Send + Sync>;

/// What the keys of a limiter are called: by the quotas that they have.
pub(super) struct Names {
    limiter: WeakLimiter,
    naming: Option<Naming>,
    labels: Labels,
}

impl Names {
    pub(super) fn new(limiter: WeakLimiter, naming: Option<Naming>, labels: Labels) -> Self {
        Self { limiter, naming, labels }
    }

    pub(super) fn of(&self, key: &str) -> SharedString {
        let named = self.naming.as_ref().and_then(|naming| naming(key));
        let name = named.or_else(|| self.limiter.upgrade()?.quotas().name_of(key));
        name.map_or(OTHER, |name| self.labels.of(&name))
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").field("labels", &self.labels).finish_non_exhaustive()
    }
}
