use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::terminal::rfc3339;
use paceline::Timestamp;
use paceline::limiter::{
    BucketSnapshot, KeySnapshot, KeyStats, LearnedLimit, LimitStats, RefusalKind, Utilization,
};
use paceline::quota::{Dimension, Window};

/// The usage of a key. Field names are stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct KeyUsage {
    /// The key.
    pub(crate) key: String,
    /// The name of its quota: the key, a glob, or `regex:` and a regular expression.
    pub(crate) quota: Option<String>,
    /// The usage of its limits, in the order of the quota.
    pub(crate) limits: Vec<LimitUsage>,
    /// The end of its cool-down after a refusal.
    pub(crate) cooling_until: Option<Rfc3339>,
    /// The kind of that refusal; null if it is unknown.
    #[serde(serialize_with = "kind_name")]
    pub(crate) cooling_kind: Option<RefusalKind>,
    /// The limits measured by its provider's answers.
    pub(crate) learned: Vec<LearnedUsage>,
    /// The used parts of the account's windows.
    pub(crate) utilization: Vec<WindowUsage>,
    /// The longest time that a request waits for its limits, 0 if it is refused instead; null if nothing bounds it.
    #[serde(rename = "max_wait_s", serialize_with = "wait_seconds")]
    pub(crate) max_wait: Option<Duration>,
    /// The time of the last answer of the store of shared limits; null if they aren't shared.
    pub(crate) as_of: Option<Rfc3339>,
}

/// A limit measured by a provider's answers. Field names are stable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LearnedUsage(pub(crate) LearnedLimit);

/// The used part of a window of the account. Field names are stable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowUsage(pub(crate) Utilization);

/// The usage of a limit. Field names are stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LimitUsage {
    /// The dimension.
    pub(crate) dimension: String,
    /// The window; null for concurrency and for a limit that never resets.
    #[serde(rename = "window_s", serialize_with = "seconds")]
    pub(crate) window: Option<Window>,
    /// The current limit; null if unknown.
    pub(crate) limit: Option<u64>,
    /// The limit of the quota; above `limit` while the key is reduced.
    pub(crate) original: Option<u64>,
    /// The amount used.
    pub(crate) used: u64,
    /// The amount reserved by requests in flight.
    pub(crate) held: u64,
    /// The available amount, less the margin; null if the limit is unknown.
    pub(crate) available: Option<u64>,
    /// The time at which the limit is unused again; null if it is unused now.
    pub(crate) resets_at: Option<Rfc3339>,
}

/// A time, written as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rfc3339(pub(crate) Timestamp);

impl KeyUsage {
    /// Returns the usage of a key, with or without a quota.
    pub(crate) fn new(
        key: &str,
        quota: Option<String>,
        stats: &KeyStats,
        stored: Option<&KeySnapshot>,
        now: Timestamp,
    ) -> Self {
        let known = stats.limits.iter().map(|limit| LimitUsage::of(limit, now));
        let unknown = stored.into_iter().filter(|_| stats.limits.is_empty());
        let unknown = unknown.flat_map(|key| &key.buckets);
        let limits = known.chain(unknown.map(|bucket| LimitUsage::unlimited(bucket, now)));
        let learned = stored.into_iter().flat_map(|key| &key.learned);
        let stored_windows = stored.into_iter().filter(|_| stats.utilization.is_empty());
        let stored_windows = stored_windows.flat_map(|key| &key.utilization);
        let windows = stats.utilization.iter().chain(stored_windows);
        let (cooling_until, cooling_kind) = match stored {
            Some(stored) if stats.cooling_until.is_none() => {
                (stored.cooling_until, stored.cooling_kind)
            }
            _ => (stats.cooling_until, stats.cooling_kind),
        };
        let cooling_until = cooling_until.filter(|&until| until > now);
        Self {
            key: key.to_owned(),
            quota,
            limits: limits.collect(),
            learned: learned.cloned().map(LearnedUsage).collect(),
            utilization: windows.cloned().map(WindowUsage).collect(),
            cooling_until: cooling_until.map(Rfc3339),
            cooling_kind: cooling_until.and(cooling_kind),
            max_wait: None,
            as_of: None,
        }
    }
}

impl LimitUsage {
    fn of(limit: &LimitStats, now: Timestamp) -> Self {
        Self {
            dimension: limit.dimension.to_string(),
            window: (limit.dimension != Dimension::Concurrency).then_some(limit.window),
            limit: Some(limit.limit),
            original: Some(limit.original),
            used: limit.used,
            held: limit.held,
            available: Some(limit.available),
            resets_at: resets_at(limit.window, limit.fresh_at).filter(|at| at.0 > now),
        }
    }

    /// Returns the usage of an unknown limit.
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
            resets_at: last.and_then(|at| resets_at(bucket.window, at)),
        }
    }
}

/// Returns the time at which a limit is unused; `None` if it never resets.
fn resets_at(window: Window, fresh_at: Timestamp) -> Option<Rfc3339> {
    (!window.is_endless()).then_some(Rfc3339(fresh_at))
}

impl Serialize for LearnedUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LearnedLimit { dimension, amount, configured, measured_at, events, source, .. } =
            &self.0;
        let mut fields = serializer.serialize_struct("LearnedUsage", 6)?;
        fields.serialize_field("dimension", dimension)?;
        fields.serialize_field("amount", amount)?;
        fields.serialize_field("configured", configured)?;
        fields.serialize_field("measured_at", &Rfc3339(*measured_at))?;
        fields.serialize_field("events", events)?;
        fields.serialize_field("source", source)?;
        fields.end()
    }
}

impl Serialize for WindowUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Utilization { window, used, resets_at, observed_at, held_to, .. } = &self.0;
        let mut fields = serializer.serialize_struct("WindowUsage", 5)?;
        fields.serialize_field("window", window)?;
        fields.serialize_field("used", used)?;
        fields.serialize_field("resets_at", &resets_at.map(Rfc3339))?;
        fields.serialize_field("observed_at", &Rfc3339(*observed_at))?;
        fields.serialize_field("held_to", held_to)?;
        fields.end()
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

fn seconds<S: Serializer>(window: &Option<Window>, serializer: S) -> Result<S::Ok, S::Error> {
    let window = window.filter(|window| !window.is_endless());
    window.map(|window| window.as_duration().as_secs_f64()).serialize(serializer)
}

fn kind_name<S: Serializer>(kind: &Option<RefusalKind>, serializer: S) -> Result<S::Ok, S::Error> {
    kind.map(RefusalKind::as_str).serialize(serializer)
}

fn wait_seconds<S: Serializer>(wait: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    wait.map(|wait| wait.as_secs_f64()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::engine::Saved;

    #[test]
    fn key_without_quota_shows_usage_within_window() {
        let at = Timestamp::from_unix_secs;
        let taken = vec![(at(1), 7), (at(50), 5), (at(60), 3)];
        let saved = Saved { taken, held: 2 };
        let bucket = BucketSnapshot::new(Dimension::Tokens, Window::MINUTE, saved);
        let stored = KeySnapshot::new("k", vec![bucket]);
        let key = KeyUsage::new("k", None, &KeyStats::default(), Some(&stored), at(61));
        let limit = &key.limits[0];
        assert_eq!((limit.limit, limit.used, limit.held), (None, 8, 2));
        assert_eq!(limit.resets_at, Some(Rfc3339(at(120))));
    }
}
