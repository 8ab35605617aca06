use compact_str::CompactString;

use super::code::Code;
use super::error::Refused;
use super::stats::KeyStats;
use crate::engine::Wait;
use crate::quota::Dimension;
use crate::timestamp::Timestamp;

/// The answer to "may I?".
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The answer.
    pub code: Code,
    /// The key that was asked about, or that binds.
    pub key: CompactString,
    /// The dimension that binds, if one does.
    pub dimension: Option<Dimension>,
    /// When it would fit, where it doesn't now.
    pub wait: Option<Wait>,
    /// The amount needed of the dimension that binds, and its limit.
    pub need: Option<(u64, u64)>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// The key's figures at the moment of the decision.
    pub stats: KeyStats,
}

impl Decision {
    /// Returns whether the request would have been granted.
    pub fn is_allowed(&self) -> bool {
        self.wait.is_none()
    }

    /// Returns the refusal, with the reason in words and the wait, if it would have been refused.
    pub fn refused(&self) -> Option<Refused> {
        let Self { code, need, asked_at, .. } = *self;
        let (key, dimension) = (self.key.clone(), self.dimension.clone());
        self.wait.map(|wait| Refused { key, code, dimension, wait, need, asked_at, figures: None })
    }
}
