use crate::shared::script::{Amounts, LeaseRequest};

/// A lease call: the usage to report and the amounts to request.
#[derive(Debug, Clone)]
pub(crate) struct LeaseCall {
    /// The usage to report, for each rule.
    pub(crate) used: Amounts,
    /// The amounts to hold from now on.
    pub(crate) wanted: LeaseRequest,
}

/// The values that limit the amount that one process may lease of each bucket: its fair share of the
/// available amount.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeaseLimits {
    /// The amount available for each rule at the last response; the bucket's capacity if unknown.
    pub(crate) available: Option<Amounts>,
    /// The number of processes that share the key; 0 counts as 1.
    pub(crate) members: u64,
}

impl LeaseLimits {
    /// Returns this process's fair share of a rule's bucket with this capacity.
    pub(super) fn fair_share(&self, rule: usize, capacity: u64) -> u64 {
        let known = self.available.as_ref().and_then(|all| all.get(rule).copied());
        known.unwrap_or(capacity).min(capacity) / self.members.max(1)
    }
}
