use std::collections::BTreeMap;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{
    BucketChanges, BucketSnapshot, KeyChanges, KeySnapshot, Utilization,
};
use paceline_limiter::quota::Dimension;

use crate::State;

/// Converts amounts held by requests in flight to usage at the time of the last usage in the state, or
/// at `written` if there is none, since the actual usage of these requests will not be known.
pub(super) fn charge_held(state: &mut State, written: Timestamp) {
    let buckets = state.keys.iter().flat_map(|key| &key.buckets);
    let last = buckets.filter_map(|bucket| bucket.saved.taken.last()).map(|(at, _)| *at).max();
    let last = last.unwrap_or(written);
    for key in &mut state.keys {
        key.buckets.retain(|bucket| bucket.dimension != Dimension::Concurrency);
        for bucket in &mut key.buckets {
            let held = std::mem::take(&mut bucket.saved.held);
            if held > 0 {
                bucket.saved.taken.push((last, held));
                bucket.saved.taken.sort_unstable();
            }
        }
    }
    state.keys.retain(|key| {
        !key.buckets.is_empty()
            || key.cooling_until.is_some()
            || !key.learned.is_empty()
            || !key.utilization.is_empty()
    });
}

/// Returns the changes that `stored` lacks in comparison with `source`.
pub(super) fn missing(source: &State, stored: &State) -> Vec<KeyChanges> {
    let all = source.keys.iter().map(|key| {
        let same = stored.keys.iter().find(|other| other.key == key.key);
        key_changes(key, same)
    });
    all.filter(|key| {
        !key.buckets.is_empty()
            || key.cooling_until.is_some()
            || key.learned.is_some()
            || key.utilization.is_some()
    })
    .collect()
}

fn key_changes(key: &KeySnapshot, stored: Option<&KeySnapshot>) -> KeyChanges {
    let mut changes = KeyChanges::new(key.key.as_str());
    let until = stored.and_then(|stored| stored.cooling_until);
    changes.cooling_until =
        key.cooling_until.filter(|imported| until.is_none_or(|until| *imported > until));
    changes.cooling_kind = changes.cooling_until.and(key.cooling_kind);
    let is_learned = stored.is_some_and(|stored| !stored.learned.is_empty());
    changes.learned = Some(key.learned.clone()).filter(|new| !new.is_empty() && !is_learned);
    let is_known = |window: &&Utilization| {
        let known = stored.into_iter().flat_map(|stored| &stored.utilization);
        known
            .into_iter()
            .any(|known| known.window == window.window && known.observed_at >= window.observed_at)
    };
    let newer: Vec<_> =
        key.utilization.iter().filter(|window| !is_known(window)).cloned().collect();
    changes.utilization = Some(newer).filter(|newer| !newer.is_empty());
    for bucket in &key.buckets {
        let is_same_bucket = |other: &&BucketSnapshot| {
            other.dimension == bucket.dimension && other.window == bucket.window
        };
        let same = stored.and_then(|stored| stored.buckets.iter().find(is_same_bucket));
        let imported = imported(bucket, same);
        if !imported.is_empty() {
            let (dimension, window) = (bucket.dimension.clone(), bucket.window);
            let mut missing = BucketChanges::new(dimension, window, imported, 0);
            missing.refill = bucket.refill;
            changes.buckets.push(missing);
        }
    }
    changes
}

/// Returns the entries to add so that each grain of the window has at least the usage of `bucket`.
fn imported(bucket: &BucketSnapshot, stored: Option<&BucketSnapshot>) -> Vec<(Timestamp, i64)> {
    let stored = stored.map(grain_totals).unwrap_or_default();
    let more = grain_totals(bucket).into_iter().filter_map(|(grain, (at, amount))| {
        let present = stored.get(&grain).map_or(0, |(_, amount)| *amount);
        let more = i64::try_from(amount.saturating_sub(present)).unwrap_or(i64::MAX);
        (more > 0).then_some((at, more))
    });
    more.collect()
}

/// Returns the last time and the total of each grain, within which stores merge entries.
fn grain_totals(bucket: &BucketSnapshot) -> BTreeMap<u64, (Timestamp, u64)> {
    let grain = (bucket.window.as_nanos() / GRAINS_PER_WINDOW).max(1);
    let mut grain_totals: BTreeMap<u64, (Timestamp, u64)> = BTreeMap::new();
    for &(at, amount) in &bucket.saved.taken {
        let (last, sum) = grain_totals.entry(at.as_nanos() / grain).or_default();
        *last = at.max(*last);
        *sum = sum.saturating_add(amount);
    }
    grain_totals
}

/// The number of grains per window.
const GRAINS_PER_WINDOW: u64 = 256;
