//! The state of a limit, as reported in headers.

use super::exceeded_limit::LimitKind;

/// The state of one limit, as reported in headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LimitStatus {
    pub(super) kind: LimitKind,
    pub(super) limit: u64,
    pub(super) remaining: u64,
    /// Nanoseconds until the limit is unused.
    pub(super) reset: u64,
}

impl LimitStatus {
    /// Returns the state of the limit of a kind; `None` if there is no such limit.
    pub(super) fn of(limits: &[Self], kind: LimitKind) -> Option<Self> {
        limits.iter().find(|limit| limit.kind == kind).copied()
    }
}
