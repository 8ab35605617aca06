use crate::answer::learned::LearnedLimit;
use crate::answer::utilization::Utilization;
use crate::engine::Saved;
use crate::quota::{Dimension, Window};
use crate::refusal::RefusalKind;
use crate::timestamp::Timestamp;

/// The state of one key, to keep across a restart.
///
/// Not `#[non_exhaustive]`: a store that doesn't know a new field must not compile, since it would lose the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySnapshot {
    /// The key.
    pub key: String,
    /// The buckets that are in use.
    pub buckets: Vec<BucketSnapshot>,
    /// The end of the cool-down after a refusal, if the key cools down.
    pub cooling_until: Option<Timestamp>,
    /// The kind of that refusal; `None` if it is unknown.
    pub cooling_kind: Option<RefusalKind>,
    /// The limits that answers of the provider have shown.
    pub learned: Vec<LearnedLimit>,
    /// The used parts of the account's windows.
    pub utilization: Vec<Utilization>,
}

/// The state of one bucket: amounts and times, independent of the algorithm. Exhaustive as a [`KeySnapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketSnapshot {
    /// The dimension that the bucket counts.
    pub dimension: Dimension,
    /// The window of the limit.
    pub window: Window,
    /// The used and held amounts.
    pub saved: Saved,
    /// The same as [`BucketChanges::refill`](crate::limiter::BucketChanges::refill), if a store states it.
    pub refill: u64,
}

impl KeySnapshot {
    /// Creates the state of a key.
    pub fn new(key: impl Into<String>, buckets: Vec<BucketSnapshot>) -> Self {
        let (learned, utilization) = (Vec::new(), Vec::new());
        Self {
            key: key.into(),
            buckets,
            cooling_until: None,
            cooling_kind: None,
            learned,
            utilization,
        }
    }

    /// Returns whether the key is equivalent to a new one.
    pub(crate) fn is_fresh(&self) -> bool {
        let Self { key: _, buckets, cooling_until, cooling_kind: _, learned, utilization } = self;
        buckets.is_empty()
            && cooling_until.is_none()
            && learned.is_empty()
            && utilization.is_empty()
    }
}

impl BucketSnapshot {
    /// Creates the state of a bucket.
    pub fn new(dimension: Dimension, window: Window, saved: Saved) -> Self {
        Self { dimension, window, saved, refill: 0 }
    }

    /// Returns the usage that a limit of another window counts as well, but doesn't know: that within its window
    /// and before its `first` usage. Held amounts are used.
    pub(crate) fn usage_before(
        &self,
        first: Option<(Timestamp, u64)>,
        window: Window,
        now: Timestamp,
    ) -> Saved {
        let held = Some((now, self.saved.held)).filter(|(_, held)| *held > 0);
        let mut taken: Vec<_> = self.saved.taken.iter().copied().chain(held).collect();
        taken.retain(|(at, _)| at.add_nanos(window.as_nanos()) > now);
        // A limit that counted the first usage too has usage since then. The others ended before it.
        let counted_too =
            |(first, _): &(Timestamp, u64)| self.saved.taken.iter().any(|(at, _)| at >= first);
        if let Some((first, amount)) = first.filter(counted_too) {
            // A store merges usage of a part of the window at the latest of its times.
            let near = first.sub_nanos(window.as_nanos() / MERGED_PARTS);
            let merged = taken.iter().filter(|(at, _)| (near..=first).contains(at));
            let merged = merged.fold(0, |sum: u64, (_, amount)| sum.saturating_add(*amount));
            taken.retain(|(at, _)| *at < near);
            taken.push((first, merged.saturating_sub(amount)));
        }
        Saved { taken, held: 0 }
    }
}

/// The least number of parts of a window within which stores merge usage.
const MERGED_PARTS: u64 = 32;
