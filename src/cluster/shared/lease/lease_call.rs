use crate::cluster::shared::script::{Amounts, Id, LeaseRequest};

/// What a ledger asks the server for, and tells it.
#[derive(Debug, Clone)]
pub(in crate::cluster::shared) struct LeaseCall {
    pub(in crate::cluster::shared) id: Id,
    /// What was used.
    pub(in crate::cluster::shared) used: Amounts,
    /// What is to be held from now on.
    pub(in crate::cluster::shared) wanted: LeaseRequest,
}

/// How much of each bucket one process may ask for in advance: its part of what is there.
#[derive(Debug, Clone, Default)]
pub(in crate::cluster::shared) struct LeaseLimits {
    /// What was available when the server was last asked, for each rule; as much as a bucket holds
    /// where it is not known.
    pub(in crate::cluster::shared) available: Option<Amounts>,
    /// How many processes share it; 0 counts as 1.
    pub(in crate::cluster::shared) members: u64,
}

impl LeaseLimits {
    /// A fair part of what there is of a rule's bucket, which holds `capacity`.
    pub(super) fn fair_share(&self, rule: usize, capacity: u64) -> u64 {
        let known = self.available.as_ref().and_then(|all| all.get(rule).copied());
        known.unwrap_or(capacity).min(capacity) / self.members.max(1)
    }
}
