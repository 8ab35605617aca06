use std::time::Duration;

use smallvec::SmallVec;

use crate::engine::{Bucket, Rule};
use crate::key::changes::BucketChanges;
use crate::quota::{Dimension, Window};
use crate::timestamp::Timestamp;

/// The changes of one bucket since the last collection.
#[derive(Debug, Default)]
pub(super) struct Delta {
    /// The times and amounts of usage, oldest first; at most one entry for each part of the window.
    entries: SmallVec<[(Timestamp, i64); 1]>,
    /// The time of the latest entry.
    latest: Timestamp,
    /// The time of the latest entry that was collected.
    collected: Timestamp,
    /// Amounts returned of usage that was already collected, with the times of that usage, oldest first.
    returned: Vec<(Timestamp, i64)>,
    /// The end of the window part of the last entry.
    ends: Timestamp,
    /// The held amount at the last collection.
    reported: u64,
    /// The amount that other limiters hold; the bucket holds it too.
    pub(super) others: u64,
}

impl Delta {
    /// Records usage at `at` after the bucket has counted it; a negative amount was returned.
    #[inline]
    pub(super) fn enter(&mut self, rule: &Rule, bucket: &Bucket, at: Timestamp, amount: i64) {
        let (sent, at) = (at, bucket.record_time(at));
        if amount < 0 && (sent <= self.collected || bucket.is_past(sent)) {
            // Not deducted from later usage, which counts for longer.
            return self.insert_returned(at, amount);
        }
        self.latest = self.latest.max(sent);
        if let Some(last) = self.entries.last_mut()
            && (last.0..self.ends).contains(&at)
        {
            *last = (at, last.1.saturating_add(amount));
        } else if amount != 0 {
            self.insert(rule.limit().window(), at, amount);
        }
    }

    #[inline(never)]
    fn insert_returned(&mut self, at: Timestamp, amount: i64) {
        let index = self.returned.partition_point(|entry| entry.0 < at);
        match self.returned.get_mut(index) {
            Some(entry) if entry.0 == at => entry.1 = entry.1.saturating_add(amount),
            _ => self.returned.insert(index, (at, amount)),
        }
        if self.returned.len() > MOST {
            // Deducted from earlier usage, which counts for less long.
            let (_, newest) = self.returned.remove(MOST);
            self.returned[MOST - 1].1 = self.returned[MOST - 1].1.saturating_add(newest);
        }
    }

    #[inline(never)]
    fn insert(&mut self, window: Window, at: Timestamp, amount: i64) {
        let width = window.as_nanos() / PARTS;
        let part = |time: Timestamp| time.as_nanos() / width;
        let index = self.entries.partition_point(|entry| part(entry.0) < part(at));
        match self.entries.get_mut(index) {
            Some(entry) if part(entry.0) == part(at) => {
                *entry = (entry.0.max(at), entry.1.saturating_add(amount));
            }
            _ => self.entries.insert(index, (at, amount)),
        }
        if self.entries.len() > MOST {
            // Moved to a later time, so that it counts for longer.
            let (_, oldest) = self.entries.remove(0);
            self.entries[0].1 = self.entries[0].1.saturating_add(oldest);
        }
        let last = self.entries.last().map_or(0, |last| part(last.0));
        self.ends = Timestamp::from_nanos(last.saturating_add(1).saturating_mul(width));
    }

    /// Moves all usage that isn't collected, and all returned amounts, to a time.
    pub(super) fn move_to(&mut self, time: Timestamp) {
        let sum = |sum: i64, (_, amount): (Timestamp, i64)| sum.saturating_add(amount);
        let (taken, returned) =
            (self.entries.drain(..).fold(0, sum), self.returned.drain(..).fold(0, sum));
        self.ends = Timestamp::UNIX_EPOCH;
        self.entries.extend((taken != 0).then_some((time, taken)));
        self.returned.extend((returned != 0).then_some((time, returned)));
    }

    /// Returns the changes since the last collection. Requests of this limiter hold the amount `held`.
    pub(super) fn collect(
        &mut self,
        dimension: &Dimension,
        window: Window,
        held: u64,
    ) -> Option<BucketChanges> {
        (self.ends, self.collected) = (Timestamp::UNIX_EPOCH, self.latest);
        let new = self.entries.drain(..).filter(|(_, amount)| *amount != 0);
        let mut taken = std::mem::take(&mut self.returned);
        taken.extend(new);
        // Usage comes before amounts returned of the same time.
        taken.sort_by_key(|&(at, amount)| (at, amount < 0));
        let reported = std::mem::replace(&mut self.reported, held);
        let window = window_name(dimension, window);
        (reported != held || !taken.is_empty())
            .then(|| BucketChanges::new(dimension.clone(), window, taken, held))
    }

    /// Drops all entries before a time. Returns the remaining usage that isn't collected yet.
    pub(super) fn drop_before(&mut self, time: Timestamp) -> &[(Timestamp, i64)] {
        self.entries.retain(|entry| entry.0 >= time);
        self.returned.retain(|entry| entry.0 >= time);
        &self.entries
    }

    /// Returns whether it holds nothing to report or to remember.
    pub(super) fn is_blank(&self) -> bool {
        self.entries.is_empty()
            && self.returned.is_empty()
            && self.reported == 0
            && self.others == 0
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        let entries = self.entries.iter_mut().chain(&mut self.returned);
        for at in entries.map(|entry| &mut entry.0).chain([
            &mut self.ends,
            &mut self.latest,
            &mut self.collected,
        ]) {
            *at = at.saturating_sub(back);
        }
    }
}

/// Returns the window that identifies a bucket: requests in flight have none.
pub(super) fn window_name(dimension: &Dimension, window: Window) -> Window {
    if *dimension == Dimension::Concurrency { Window::MINUTE } else { window }
}

/// Returns an amount of usage as an entry.
pub(super) fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The number of parts of a window. Usage within one part is one entry, with the time of the latest.
const PARTS: u64 = 64;

/// The number of entries that are kept of a bucket until they are collected.
const MOST: usize = 128;
