use std::sync::Arc;

use smallvec::SmallVec;

use crate::engine::{Bucket, Level, Rule, Shortfall, Wait};
use crate::quota::{Cost, Dimension, Limit, Window};
use crate::timestamp::Timestamp;

/// The figures of one key at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyStats {
    /// Each limit of the key, in the order of its quota.
    pub limits: Vec<LimitStats>,
    /// Requests that wait in the key's queue.
    pub waiting: usize,
    /// Until when the key cools down after a refusal.
    pub cooling_until: Option<Timestamp>,
}

/// The figures of one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitStats {
    /// The dimension that is counted.
    pub dimension: Dimension,
    /// The limit's amount now.
    pub limit: u64,
    /// The limit's amount in the key's quota: more than it is now while the key is reduced after a
    /// refusal.
    pub original: u64,
    /// The limit's window.
    pub window: Window,
    /// The amount that counts against the limit now, rounded up.
    pub used: u64,
    /// The amount that requests in flight have reserved and not yet used.
    pub held: u64,
    /// The amount that a request could still take, less the margin; rounded down.
    pub available: u64,
    /// When the limit is all unused again; a time that has passed if
    /// it is.
    pub fresh_at: Timestamp,
}

impl KeyStats {
    /// Returns the limit that has no room for a cost, by these figures.
    pub(crate) fn short(&self, rules: &[Rule], cost: &Cost) -> Option<Shortfall> {
        let full = |(rule, limit): (&Rule, &LimitStats)| rule.amount(cost) > limit.available;
        let rule = rules.iter().zip(&self.limits).position(full)?;
        let wait = if rules[rule].can_admit(cost) { Wait::Unknown } else { Wait::Never };
        Some(Shortfall { rule, wait })
    }
}

/// The limits of one key and the levels of their buckets, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// The limits as they are now, reduced or not; `None` of a key that has none.
    pub(crate) rules: Option<Arc<[Rule]>>,
    levels: SmallVec<[Level; 3]>,
    /// When that was.
    pub(crate) at: Timestamp,
}

impl Figures {
    /// The figures of rules with their buckets, and of levels that a backend knows instead.
    pub(crate) fn new(
        rules: Arc<[Rule]>,
        buckets: &[Bucket],
        known: Option<&[Level]>,
        at: Timestamp,
    ) -> Self {
        let level = |(index, (rule, bucket)): (usize, (&Rule, &Bucket))| {
            let known = known.and_then(|levels| levels.get(index).copied());
            known.unwrap_or_else(|| bucket.level(rule, at))
        };
        let levels = rules.iter().zip(buckets).enumerate().map(level).collect();
        Self { rules: Some(rules), levels, at }
    }

    /// Returns the limits.
    pub(crate) fn rules(&self) -> &[Rule] {
        self.rules.as_deref().unwrap_or_default()
    }

    /// Returns each limit with the level of its bucket.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (&Rule, &Level)> {
        self.rules().iter().zip(&self.levels)
    }
}

impl LimitStats {
    pub(crate) fn new(limit: &Limit, original: u64, level: &Level) -> Self {
        Self {
            dimension: limit.dimension().clone(),
            limit: limit.amount(),
            original,
            window: limit.window(),
            used: level.used,
            held: level.held,
            available: level.available,
            fresh_at: level.fresh_at,
        }
    }
}
