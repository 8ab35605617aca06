/// What became of a new configuration in a limiter that runs: the paths of what differs from the one
/// before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// What is in use from now on, as `quotas.gpt-4o`.
    pub changed: Vec<String>,
    /// What is only used after a restart, as `store`.
    pub needs_restart: Vec<String>,
}
