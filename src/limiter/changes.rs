use compact_str::CompactString;

use super::limiter::Limiter;
use crate::quota::{Dimension, Window};

/// What has changed of one key since somebody last asked: for a store, and from there for the other
/// limiters that share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyChanges {
    /// The key.
    pub key: CompactString,
    /// Its buckets that have changed.
    pub buckets: Vec<BucketChanges>,
    /// Until when the key cools down, in nanoseconds since the epoch; 0 if it doesn't. `None` if
    /// that hasn't changed.
    pub cooling_until: Option<u64>,
    /// When the key was reset, in nanoseconds since the epoch: what was taken before is forgotten.
    pub reset_at: Option<u64>,
}

/// What has changed of one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketChanges {
    /// What the bucket counts.
    pub dimension: Dimension,
    /// Its window.
    pub window: Window,
    /// What was taken and when, in nanoseconds since the epoch, oldest first. Less than nothing was
    /// given back, of what had been taken at that time. What was taken at about the same time is one
    /// entry, of the latest of these times.
    pub taken: Vec<(u64, i64)>,
    /// What requests in flight hold now, all of it: not what has changed.
    pub held: u64,
}

impl KeyChanges {
    /// Nothing yet of a key.
    pub fn new(key: impl Into<CompactString>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }
}

impl BucketChanges {
    /// Changes of a bucket.
    pub fn new(dimension: Dimension, window: Window, taken: Vec<(u64, i64)>, held: u64) -> Self {
        Self { dimension, window, taken, held }
    }
}

impl Limiter {
    /// From now on, keeps what changes until it is collected.
    pub fn track(&self) {}

    /// What has changed since this was last called, sorted by key.
    pub fn collect_changes(&self) -> Vec<KeyChanges> {
        Vec::new()
    }

    /// Takes over what other limiters of the same store did: what they took counts here too, and
    /// what they hold in all counts as held, until the next time that this says what they hold. None of it
    /// is collected here.
    pub fn apply_changes(&self, _others: &[KeyChanges]) {}
}
