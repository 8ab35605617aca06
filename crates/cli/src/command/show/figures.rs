use serde::{Serialize, Serializer};

use crate::terminal::rfc3339;
use tollgate::Timestamp;
use tollgate::limiter::{BucketSnapshot, KeySnapshot, KeyStats, LimitStats};
use tollgate::quota::{Dimension, Window};

/// What is shown of a key. Names are a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::command) struct KeyFigures {
    /// The key.
    pub(in crate::command) key: String,
    /// The name of the quota that it falls under: its own, a glob, `regex:` and a regular expression.
    pub(in crate::command) quota: Option<String>,
    /// Its limits, in the order of its quota.
    pub(in crate::command) limits: Vec<LimitFigures>,
    /// Until when nothing of it is sent, after its provider refused it.
    pub(in crate::command) cooling_until: Option<Moment>,
}

/// What is shown of one limit. Names are a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::command) struct LimitFigures {
    /// What is counted.
    pub(in crate::command) dimension: String,
    /// The length of its window; null for what is counted at once.
    #[serde(rename = "window_s", serialize_with = "seconds")]
    pub(in crate::command) window: Option<Window>,
    /// The amount now; null where none is known.
    pub(in crate::command) limit: Option<u64>,
    /// The amount of the quota: more than `limit` while the key is reduced.
    pub(in crate::command) original: Option<u64>,
    /// What counts against the limit now.
    pub(in crate::command) used: u64,
    /// What requests in flight have reserved besides.
    pub(in crate::command) held: u64,
    /// What could still be taken, the margin taken off; null where no limit is known.
    pub(in crate::command) available: Option<u64>,
    /// When all of it is unused again; null if it is.
    pub(in crate::command) resets_at: Option<Moment>,
}

/// A time, written as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::command) struct Moment(pub(in crate::command) Timestamp);

impl KeyFigures {
    /// The figures of a key; of one that no quota names, what was used of it all the same.
    pub(in crate::command) fn new(
        key: &str,
        quota: Option<String>,
        stats: &KeyStats,
        stored: Option<&KeySnapshot>,
        now: Timestamp,
    ) -> Self {
        let known = stats.limits.iter().map(|limit| LimitFigures::of(limit, now));
        let unknown = stored.into_iter().filter(|_| stats.limits.is_empty());
        let unknown = unknown.flat_map(|key| &key.buckets);
        let limits = known.chain(unknown.map(|bucket| LimitFigures::unlimited(bucket, now)));
        let cooling_until = stats.cooling_until.or(stored.and_then(|key| key.cooling_until));
        Self {
            key: key.to_owned(),
            quota,
            limits: limits.collect(),
            cooling_until: cooling_until.filter(|&until| until > now).map(Moment),
        }
    }
}

impl LimitFigures {
    fn of(limit: &LimitStats, now: Timestamp) -> Self {
        Self {
            dimension: limit.dimension.to_string(),
            window: (limit.dimension != Dimension::Concurrency).then_some(limit.window),
            limit: Some(limit.limit),
            original: Some(limit.original),
            used: limit.used,
            held: limit.held,
            available: Some(limit.available),
            resets_at: Some(limit.fresh_at).filter(|&at| at > now).map(Moment),
        }
    }

    /// What was used of a limit whose amount nobody knows.
    fn unlimited(bucket: &BucketSnapshot, now: Timestamp) -> Self {
        let past = |at: Timestamp| at + bucket.window.as_duration() <= now;
        let taken = bucket.saved.taken.iter().filter(|(at, _)| !past(*at));
        let last = taken.clone().map(|(at, _)| *at + bucket.window.as_duration()).max();
        Self {
            dimension: bucket.dimension.to_string(),
            window: (bucket.dimension != Dimension::Concurrency).then_some(bucket.window),
            limit: None,
            original: None,
            used: taken.fold(0, |sum: u64, (_, amount)| sum.saturating_add(*amount)),
            held: bucket.saved.held,
            available: None,
            resets_at: last.map(Moment),
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

fn seconds<S: Serializer>(window: &Option<Window>, serializer: S) -> Result<S::Ok, S::Error> {
    window.map(|window| window.as_duration().as_secs_f64()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::engine::Saved;

    #[test]
    fn a_key_that_no_quota_names_shows_what_was_used_in_the_window_alone() {
        let at = Timestamp::from_unix_secs;
        let taken = vec![(at(1), 7), (at(50), 5), (at(60), 3)];
        let saved = Saved { taken, held: 2 };
        let bucket = BucketSnapshot::new(Dimension::Tokens, Window::MINUTE, saved);
        let stored = KeySnapshot::new("k", vec![bucket]);
        let key = KeyFigures::new("k", None, &KeyStats::default(), Some(&stored), at(61));
        let limit = &key.limits[0];
        assert_eq!((limit.limit, limit.used, limit.held), (None, 8, 2));
        assert_eq!(limit.resets_at, Some(Moment(at(120))));
    }
}
