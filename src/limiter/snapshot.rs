use crate::engine::Saved;
use crate::quota::{Dimension, Window};

use super::slot::Slot;

/// One key's state, to be kept across a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeySnapshot {
    /// The key.
    pub key: String,
    /// Its buckets that aren't fresh.
    pub buckets: Vec<BucketSnapshot>,
    /// Until when it cools down after a refusal, in nanoseconds since the epoch, if it does.
    pub cooling_until: Option<u64>,
}

/// One bucket's state: what was taken and when, whatever the algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketSnapshot {
    /// What the bucket counts.
    pub dimension: Dimension,
    /// Its window.
    pub window: Window,
    /// What was taken and held.
    pub saved: Saved,
}

impl KeySnapshot {
    /// A key's state from elsewhere.
    pub fn new(key: impl Into<String>, buckets: Vec<BucketSnapshot>) -> Self {
        Self { key: key.into(), buckets, cooling_until: None }
    }
}

impl BucketSnapshot {
    /// A bucket's state from elsewhere.
    pub fn new(dimension: Dimension, window: Window, saved: Saved) -> Self {
        Self { dimension, window, saved }
    }
}

impl Slot {
    pub(super) fn snapshot(&self, now: u64) -> KeySnapshot {
        let buckets = self.plan.rules.iter().zip(&self.buckets);
        let kept = buckets.filter(|(rule, _)| *rule.dimension() != Dimension::Concurrency);
        let save = |(rule, bucket): (&crate::engine::Rule, &crate::engine::Bucket)| {
            let limit = rule.limit();
            let saved = bucket.save(rule, now);
            BucketSnapshot::new(limit.dimension().clone(), limit.window(), saved)
        };
        let fresh = |b: &BucketSnapshot| b.saved.taken.is_empty() && b.saved.held == 0;
        let buckets = kept.map(save).filter(|b| !fresh(b)).collect();
        KeySnapshot { key: self.key.to_string(), buckets, cooling_until: None }
    }

    /// Takes another's state on top; a limit that is no longer there is left out.
    pub(super) fn absorb(&mut self, snapshot: &KeySnapshot, now: u64) {
        for other in &snapshot.buckets {
            let mine = self.plan.rules.iter().zip(&mut self.buckets);
            for (rule, bucket) in mine {
                let limit = rule.limit();
                if *limit.dimension() == other.dimension && limit.window() == other.window {
                    bucket.absorb(rule, &other.saved, now);
                }
            }
        }
    }
}
