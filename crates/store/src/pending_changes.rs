use std::collections::BTreeMap;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{BucketChanges, KeyChanges};
use paceline_limiter::quota::Key;
use paceline_limiter::seam;

/// Changes not written yet, merged per key, so that memory stays bounded while the store is
/// unavailable.
#[derive(Debug, Default)]
pub(super) struct PendingChanges(BTreeMap<Key, KeyChanges>);

impl PendingChanges {
    /// Adds changes.
    pub(super) fn add(&mut self, changes: Vec<KeyChanges>) {
        for change in changes {
            match self.0.get_mut(&change.key) {
                Some(kept) => merge(kept, change),
                None => drop(self.0.insert(change.key.clone(), change)),
            }
        }
    }

    /// Returns all changes, sorted by key.
    pub(super) fn all(&self) -> Vec<KeyChanges> {
        self.0.values().cloned().collect()
    }

    /// Clears the changes after they were written.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the number of changed keys.
    pub(super) fn keys(&self) -> usize {
        self.0.len()
    }
}

fn merge(kept: &mut KeyChanges, change: KeyChanges) {
    let KeyChanges { key: _, buckets, cooling_until, cooling_kind, learned, utilization, reset_at } =
        change;
    if let Some(at) = reset_at {
        kept.reset_at = Some(at);
        (kept.cooling_until, kept.cooling_kind) = (None, None);
        (kept.learned, kept.utilization) = (None, None);
        kept.buckets.iter_mut().for_each(|bucket| bucket.taken.retain(|entry| entry.0 >= at));
    }
    if cooling_until.is_some() {
        (kept.cooling_until, kept.cooling_kind) = (cooling_until, cooling_kind);
    }
    kept.learned = learned.or(kept.learned.take());
    kept.utilization = utilization.or(kept.utilization.take());
    for bucket in buckets {
        let is_same =
            |b: &&mut BucketChanges| b.dimension == bucket.dimension && b.window == bucket.window;
        match kept.buckets.iter_mut().find(is_same) {
            None => kept.buckets.push(bucket),
            Some(kept) => {
                (kept.held, kept.refill) = (bucket.held, bucket.refill);
                kept.taken.extend(bucket.taken);
                if kept.taken.len() > MAX_ENTRIES {
                    compact(&mut kept.taken, kept.window.as_nanos());
                }
            }
        }
    }
}

/// Merges close entries of the last two windows, and merges all older entries into one, which counts
/// only for totals.
fn compact(taken: &mut Vec<(Timestamp, i64)>, window: u64) {
    merge_close_entries(taken, window / PARTS_PER_WINDOW);
    let newest = taken.last().map_or(Timestamp::UNIX_EPOCH, |entry| entry.0);
    let past = seam::sub_nanos(newest, window.saturating_mul(2));
    let count = taken.partition_point(|entry| entry.0 < past);
    let sum = taken[..count].iter().fold(0, |sum: i64, entry| sum.saturating_add(entry.1));
    if count > 1 {
        taken.splice(..count, [(past, sum)]);
    }
}

/// Merges the entries within each `step` nanoseconds into one, at the latest of their times.
fn merge_close_entries(entries: &mut Vec<(Timestamp, i64)>, step: u64) {
    entries.sort_unstable_by_key(|&(at, _)| at);
    let step = step.max(1);
    entries.dedup_by(|next, kept| {
        let same = next.0.as_nanos() / step == kept.0.as_nanos() / step;
        if same {
            *kept = (next.0, kept.1.saturating_add(next.1));
        }
        same
    });
    entries.retain(|&(_, amount)| amount != 0);
}

/// The maximum number of entries per bucket; above it, entries are merged.
const MAX_ENTRIES: usize = 1_024;
/// The number of parts of a window within which entries are merged.
const PARTS_PER_WINDOW: u64 = 256;

#[cfg(test)]
mod tests {
    use paceline_limiter::limiter::RefusalKind;
    use paceline_limiter::quota::{Dimension, Window};

    use super::*;

    fn change(taken: Vec<(u64, i64)>, held: u64) -> KeyChanges {
        let mut change = KeyChanges::new("a");
        let taken = taken.into_iter().map(|(at, amount)| (Timestamp::from_nanos(at), amount));
        let taken = taken.collect();
        let bucket = BucketChanges::new(Dimension::Requests, Window::DAY, taken, held);
        change.buckets.push(bucket);
        change
    }

    #[test]
    fn changes_of_a_key_are_merged() {
        let mut pending = PendingChanges::default();
        pending.add(vec![change(vec![(1, 5)], 3)]);
        pending.add(vec![change(vec![(2, 6)], 1)]);
        assert_eq!(pending.all(), [change(vec![(1, 5), (2, 6)], 1)]);
        let mut reset = change(vec![(4, 1)], 0);
        reset.reset_at = Some(Timestamp::from_nanos(2));
        pending.add(vec![reset]);
        let mut all = change(vec![(2, 6), (4, 1)], 0);
        all.reset_at = Some(Timestamp::from_nanos(2));
        assert_eq!(pending.all(), [all]);
        assert_eq!(pending.keys(), 1);
    }

    #[test]
    fn reset_drops_an_earlier_pause_with_its_kind() {
        let mut pending = PendingChanges::default();
        let mut pause = KeyChanges::new("a");
        pause.cooling_until = Some(Timestamp::from_nanos(9));
        pause.cooling_kind = Some(RefusalKind::Window);
        let mut reset = KeyChanges::new("a");
        reset.reset_at = Some(Timestamp::from_nanos(2));
        pending.add(vec![pause, reset.clone()]);
        assert_eq!(pending.all(), [reset]);
    }

    #[test]
    fn pending_changes_stay_bounded_over_a_month() {
        let mut pending = PendingChanges::default();
        let minute = Window::MINUTE.as_nanos();
        for at in 0..31 * 1_440 {
            pending.add(vec![change(vec![(at * minute, 1)], 0)]);
        }
        let [all] = &pending.all()[..] else { panic!("one key") };
        let taken = &all.buckets[0].taken;
        assert_eq!(taken.iter().map(|(_, amount)| amount).sum::<i64>(), 31 * 1_440);
        assert!(taken.len() <= 1_024, "{}", taken.len());
    }

    #[test]
    fn close_entries_merge_into_the_latest_time() {
        let at = Timestamp::from_nanos;
        let mut entries = vec![(at(19), 2), (at(10), 1), (at(20), 4), (at(31), 3), (at(32), -3)];
        merge_close_entries(&mut entries, 10);
        assert_eq!(entries, [(at(19), 3), (at(20), 4)]);
    }
}
