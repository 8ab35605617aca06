use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{KeyChanges, KeySnapshot};
use paceline_limiter::quota::{Dimension, Window};
use paceline_limiter::seam;
use serde::{Deserialize, Serialize};

use super::bucket_usage::BucketUsage;
use super::stored_learned::StoredLearned;
use super::stored_utilization::StoredUtilization;
use super::text::{StoredKind, Time};
use crate::clock_origin::ClockOrigin;

/// The usage of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyUsage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cooling: Option<CoolDown>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    learned: Vec<StoredLearned>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    utilization: Vec<StoredUtilization>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) buckets: Vec<BucketUsage>,
}

/// The cool-down of a key after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CoolDown {
    /// The time at which the cool-down was recorded. If the clock has changed since, the remaining
    /// cool-down is at most as long as it was then.
    pub(super) noted_at: Time,
    pub(super) until: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<StoredKind>,
}

impl KeyUsage {
    pub(super) fn merge(&mut self, changes: &KeyChanges, now: Timestamp) {
        let KeyChanges {
            key: _,
            buckets,
            cooling_until,
            cooling_kind,
            learned,
            utilization,
            reset_at,
        } = changes;
        if reset_at.is_some() {
            self.reset();
        }
        if let Some(until) = cooling_until {
            let kind = cooling_kind.map(StoredKind);
            let cooling = CoolDown { noted_at: Time(now), until: Time(*until), kind };
            self.cooling = (*until > now).then_some(cooling);
        }
        if let Some(learned) = learned {
            self.learned = learned.iter().map(StoredLearned::from).collect();
        }
        if let Some(windows) = utilization {
            self.utilization = windows.iter().map(StoredUtilization::from).collect();
        }
        for change in buckets {
            self.bucket(change.dimension.clone(), change.window).merge(change);
        }
    }

    /// Deletes usage, the cool-down, learned limits and utilization; held amounts stay.
    fn reset(&mut self) {
        self.cooling = None;
        self.learned.clear();
        self.utilization.clear();
        self.buckets.iter_mut().for_each(|bucket| bucket.taken.clear());
    }

    pub(super) fn charge_held(&mut self, now: Timestamp) {
        self.buckets.iter_mut().for_each(|bucket| bucket.charge_held(now));
    }

    /// Deletes expired usage, learned limits and utilization.
    pub(super) fn prune(&mut self, now: Timestamp) {
        self.cooling = self.cooling.filter(|cooling| cooling.until.0 > now);
        self.buckets.iter_mut().for_each(|bucket| bucket.prune(now));
        self.buckets.retain(|bucket| !bucket.is_empty());
        self.learned.retain(|limit| seam::is_limit_current(&limit.limit(), now));
        self.utilization.retain(|window| seam::is_utilization_current(&window.utilization(), now));
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self { cooling, learned, utilization, buckets } = self;
        cooling.is_none() && learned.is_empty() && utilization.is_empty() && buckets.is_empty()
    }

    /// Converts every time from the clock of `then` to that of `origin`, which shows `now`.
    pub(super) fn retime(&mut self, then: &ClockOrigin, origin: &ClockOrigin, now: Timestamp) {
        self.buckets.iter_mut().for_each(|bucket| bucket.retime(|at| origin.read(at, then, now)));
        for limit in &mut self.learned {
            limit.measured_at = Time(origin.read(limit.measured_at.0, then, now));
        }
        for StoredUtilization { resets_at, observed_at, .. } in &mut self.utilization {
            *resets_at =
                resets_at.map(|at| Time(origin.read_until(at.0, observed_at.0, then, now)));
            *observed_at = Time(origin.read(observed_at.0, then, now));
        }
        if let Some(CoolDown { noted_at, until, kind: _ }) = &mut self.cooling {
            *until = Time(origin.read_until(until.0, noted_at.0, then, now));
            *noted_at = Time(origin.read(noted_at.0, then, now));
        }
    }

    pub(super) fn snapshot(&self, key: &str) -> KeySnapshot {
        KeySnapshot {
            key: key.to_owned(),
            buckets: self.buckets.iter().map(BucketUsage::snapshot).collect(),
            cooling_until: self.cooling.map(|cooling| cooling.until.0),
            cooling_kind: self.cooling.and_then(|cooling| Some(cooling.kind?.0)),
            learned: self.learned.iter().map(StoredLearned::limit).collect(),
            utilization: self.utilization.iter().map(StoredUtilization::utilization).collect(),
        }
    }

    pub(super) fn from_snapshot(snapshot: &KeySnapshot, now: Timestamp) -> Self {
        let KeySnapshot { key: _, buckets, cooling_until, cooling_kind, learned, utilization } =
            snapshot;
        let until = cooling_until.map(Time);
        let kind = cooling_kind.map(StoredKind);
        let cooling = until.map(|until| CoolDown { noted_at: Time(now), until, kind });
        let mut buckets: Vec<BucketUsage> = buckets.iter().map(BucketUsage::from).collect();
        buckets.retain(|bucket| !bucket.is_empty());
        let learned = learned.iter().map(StoredLearned::from).collect();
        let utilization = utilization.iter().map(StoredUtilization::from).collect();
        let mut key = Self { cooling, learned, utilization, buckets };
        key.sort();
        key
    }

    fn bucket(&mut self, dimension: Dimension, window: Window) -> &mut BucketUsage {
        let found = self.buckets.iter().position(|bucket| bucket.matches(&dimension, window));
        let at = found.unwrap_or_else(|| {
            let bucket = BucketUsage::new(dimension, window);
            let order = |other: &BucketUsage| {
                (&other.dimension, other.window) < (&bucket.dimension, window)
            };
            let at = self.buckets.partition_point(order);
            self.buckets.insert(at, bucket);
            at
        });
        &mut self.buckets[at]
    }

    pub(super) fn sort(&mut self) {
        self.buckets.sort_by(|a, b| (&a.dimension, a.window).cmp(&(&b.dimension, b.window)));
    }
}
