use crate::engine::{Bucket, Rule, Saved};
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
    /// As [`BucketChanges::refill`](super::BucketChanges::refill), where a store says it.
    pub refill: u64,
}

impl KeySnapshot {
    /// A key's state from elsewhere.
    pub fn new(key: impl Into<String>, buckets: Vec<BucketSnapshot>) -> Self {
        Self { key: key.into(), buckets, cooling_until: None }
    }

    /// Whether a new key would be the same.
    pub(super) fn is_fresh(&self) -> bool {
        self.buckets.is_empty() && self.cooling_until.is_none()
    }
}

impl BucketSnapshot {
    /// A bucket's state from elsewhere.
    pub fn new(dimension: Dimension, window: Window, saved: Saved) -> Self {
        Self { dimension, window, saved, refill: 0 }
    }
}

impl Slot {
    pub(super) fn snapshot(&self, now: u64) -> KeySnapshot {
        let buckets = self.plan.rules.iter().zip(&self.buckets).enumerate();
        let kept = buckets.filter(|(_, (rule, _))| *rule.dimension() != Dimension::Concurrency);
        let save = |(at, (rule, bucket)): (usize, (&Rule, &Bucket))| {
            // What others hold, they keep.
            let ledger = self.seen().and_then(|line| line.ledger.as_deref());
            let others = ledger.map_or(0, |ledger| ledger.sheets[at].others);
            let limit = rule.limit();
            let mut saved = bucket.save(rule, now);
            saved.held = saved.held.saturating_sub(others);
            BucketSnapshot::new(limit.dimension().clone(), limit.window(), saved)
        };
        let fresh = |b: &BucketSnapshot| b.saved.taken.is_empty() && b.saved.held == 0;
        let buckets = kept.map(save).filter(|b| !fresh(b)).collect();
        let cooling_until = Some(self.sends_at(now)).filter(|&until| until > now);
        KeySnapshot { key: self.key.to_string(), buckets, cooling_until }
    }

    /// Takes what another has used on top; a limit that is no longer there is left out.
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

    /// Cools down for as long as another does.
    pub(super) fn absorb_cool_down(&mut self, snapshot: &KeySnapshot, now: u64) {
        if let Some(until) = snapshot.cooling_until {
            self.cool_down(until, now);
        }
    }
}
