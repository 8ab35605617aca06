use paceline_limiter::limiter::{KeySnapshot, NamedQuota};

/// The stored state of a limiter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// The quotas, sorted by name.
    pub quotas: Vec<NamedQuota>,
    /// The keys with usage, sorted by key.
    pub keys: Vec<KeySnapshot>,
}
