use crate::engine::Saved;
use crate::quota::{Dimension, Window};
use crate::timestamp::Timestamp;

/// One key's state, to be kept across a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeySnapshot {
    /// The key.
    pub key: String,
    /// Its buckets that aren't fresh.
    pub buckets: Vec<BucketSnapshot>,
    /// Until when it cools down after a refusal, if it does.
    pub cooling_until: Option<Timestamp>,
}

/// One bucket's state: what was taken and when, whatever the algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketSnapshot {
    /// The dimension that the bucket counts.
    pub dimension: Dimension,
    /// Its window.
    pub window: Window,
    /// The amounts taken and held.
    pub saved: Saved,
    /// As [`BucketChanges::refill`](crate::limiter::BucketChanges::refill), where a store says it.
    pub refill: u64,
}

impl KeySnapshot {
    /// A key's state from elsewhere.
    pub fn new(key: impl Into<String>, buckets: Vec<BucketSnapshot>) -> Self {
        Self { key: key.into(), buckets, cooling_until: None }
    }

    /// Returns whether a new key would be the same.
    pub(crate) fn is_fresh(&self) -> bool {
        self.buckets.is_empty() && self.cooling_until.is_none()
    }
}

impl BucketSnapshot {
    /// A bucket's state from elsewhere.
    pub fn new(dimension: Dimension, window: Window, saved: Saved) -> Self {
        Self { dimension, window, saved, refill: 0 }
    }
}
