/// The result of [`Config::apply`](crate::Config::apply): the paths of changed values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// The values in effect from now on, such as `quotas.gpt-4o`.
    pub changed: Vec<String>,
    /// The values that take effect after a restart, such as `store`.
    pub needs_restart: Vec<String>,
}
