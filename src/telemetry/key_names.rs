use std::fmt;
use std::sync::Arc;

use crate::quota::Key;
use ::metrics::SharedString;

use super::label_set::{LabelSet, OTHER};
use crate::limiter::WeakLimiter;

/// A function that returns the label of a key, or `None` for the default label.
pub(super) type NameFn = Arc<dyn Fn(&str) -> Option<Key> + Send + Sync>;

/// The labels of the keys of a limiter: the names of their quotas.
pub(super) struct KeyNames {
    limiter: WeakLimiter,
    naming: Option<NameFn>,
    labels: LabelSet,
}

impl KeyNames {
    pub(super) fn new(limiter: WeakLimiter, naming: Option<NameFn>, labels: LabelSet) -> Self {
        Self { limiter, naming, labels }
    }

    pub(super) fn of(&self, key: &str) -> SharedString {
        let named = self.naming.as_ref().and_then(|naming| naming(key));
        let name = named.or_else(|| self.limiter.upgrade()?.quotas().name_of(key));
        name.map_or(OTHER, |name| self.labels.of(&name))
    }
}

impl fmt::Debug for KeyNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyNames").field("labels", &self.labels).finish_non_exhaustive()
    }
}
