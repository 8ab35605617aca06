use crate::limiter::{KeySnapshot, NamedQuota};

/// All that a store keeps of a limiter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// Quotas, sorted by name.
    pub quotas: Vec<NamedQuota>,
    /// What was used of each key that has used any, sorted by key.
    pub keys: Vec<KeySnapshot>,
}
