use crate::answer::learned::LearnedLimit;
use crate::answer::utilization::Utilization;
use crate::quota::{Dimension, Key, Window};
use crate::refusal::RefusalKind;
use crate::timestamp::Timestamp;

/// The changes of one key since the last collection, for a store and the other limiters that share it.
///
/// A part that is `None` hasn't changed. A part that is `Some` states the present value in full, and replaces
/// what is stored: an empty list means that nothing is left, and a time that isn't in the future that the key
/// doesn't cool down. A store drops a value only if it is older.
///
/// Not `#[non_exhaustive]`: a store that doesn't know a new field must not compile, since it would lose the value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyChanges {
    /// The key.
    pub key: Key,
    /// The buckets that have changed.
    pub buckets: Vec<BucketChanges>,
    /// The end of the cool-down.
    pub cooling_until: Option<Timestamp>,
    /// The kind of the refusal behind the cool-down of [`cooling_until`](Self::cooling_until); `None` if it is unknown.
    pub cooling_kind: Option<RefusalKind>,
    /// The limits that answers of the provider have shown.
    pub learned: Option<Vec<LearnedLimit>>,
    /// The used parts of the account's windows.
    pub utilization: Option<Vec<Utilization>>,
    /// The time at which the key was reset. Usage before it no longer counts.
    pub reset_at: Option<Timestamp>,
}

/// The changes of one bucket. Exhaustive as [`KeyChanges`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketChanges {
    /// The dimension that the bucket counts.
    pub dimension: Dimension,
    /// The window of the limit; a minute for requests in flight, which have none.
    pub window: Window,
    /// The times and amounts of usage, oldest first. A negative amount was returned of usage at that
    /// time.
    ///
    /// Usage at about the same time is merged into one entry with the latest of these times. A returned
    /// amount may therefore have a time a little before that of its usage, and belongs to the first entry
    /// at or after that time.
    pub taken: Vec<(Timestamp, i64)>,
    /// The total amount that requests in flight hold now, not the change.
    pub held: u64,
    /// The amount that a token bucket refills in a window; 0 for other buckets. Usage of a token bucket
    /// counts until it has been refilled, which may be long after its window.
    pub refill: u64,
}

impl KeyChanges {
    /// Creates empty changes of a key.
    pub fn new(key: impl Into<Key>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }

    /// Returns whether nothing has changed.
    pub(crate) fn is_empty(&self) -> bool {
        // A kind comes with a time.
        let Self {
            key: _,
            buckets,
            cooling_until,
            cooling_kind: _,
            learned,
            utilization,
            reset_at,
        } = self;
        buckets.is_empty()
            && cooling_until.is_none()
            && learned.is_none()
            && utilization.is_none()
            && reset_at.is_none()
    }

    /// Returns whether the changes matter to a limiter that has no entry for the key.
    pub(crate) fn concerns_new_key(&self) -> bool {
        let takes = |bucket: &BucketChanges| bucket.taken.iter().any(|(_, amount)| *amount > 0);
        self.buckets.iter().any(|bucket| bucket.held > 0 || takes(bucket))
            || self.cooling_until.is_some_and(|until| until > Timestamp::UNIX_EPOCH)
    }
}

impl BucketChanges {
    /// Creates the changes of a bucket.
    pub fn new(
        dimension: Dimension,
        window: Window,
        taken: Vec<(Timestamp, i64)>,
        held: u64,
    ) -> Self {
        Self { dimension, window, taken, held, refill: 0 }
    }
}
