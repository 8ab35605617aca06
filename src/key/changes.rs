use crate::quota::{Dimension, Key, Window};
use crate::timestamp::Timestamp;

/// The changes of one key since they were last collected: for a store, and from there for the other
/// limiters that share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyChanges {
    /// The key.
    pub key: Key,
    /// Its buckets that have changed.
    pub buckets: Vec<BucketChanges>,
    /// Until when the key cools down; the Unix epoch if it doesn't. `None` if
    /// that hasn't changed.
    pub cooling_until: Option<Timestamp>,
    /// When the key was reset: what was taken before is forgotten.
    pub reset_at: Option<Timestamp>,
}

/// The changes of one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketChanges {
    /// The dimension that the bucket counts.
    pub dimension: Dimension,
    /// Its window; a minute for requests in flight, for which it means nothing.
    pub window: Window,
    /// What was taken and when, oldest first. Less than nothing was
    /// given back, of what had been taken at that time. What was taken at about the same time is one
    /// entry, of the latest of these times: so what is given back of it may be said of a time a little
    /// before, and belongs to the first entry that isn't before that.
    pub taken: Vec<(Timestamp, i64)>,
    /// The whole amount that requests in flight hold now, not its change.
    pub held: u64,
    /// How much comes back in a window, of a bucket that refills all the time; else 0. What was taken
    /// of such a bucket counts until it has come back, which may be long after its window.
    pub refill: u64,
}

impl KeyChanges {
    /// No changes yet of a key.
    pub fn new(key: impl Into<Key>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }

    /// Returns whether it concerns a limiter that doesn't know the key.
    pub(crate) fn concerns_new_key(&self) -> bool {
        let takes = |bucket: &BucketChanges| bucket.taken.iter().any(|(_, amount)| *amount > 0);
        self.buckets.iter().any(|bucket| bucket.held > 0 || takes(bucket))
            || self.cooling_until.is_some_and(|until| until > Timestamp::UNIX_EPOCH)
    }
}

impl BucketChanges {
    /// Changes of a bucket.
    pub fn new(
        dimension: Dimension,
        window: Window,
        taken: Vec<(Timestamp, i64)>,
        held: u64,
    ) -> Self {
        Self { dimension, window, taken, held, refill: 0 }
    }
}
