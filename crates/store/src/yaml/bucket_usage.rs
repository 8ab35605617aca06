use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::Saved;
use paceline_limiter::limiter::{BucketChanges, BucketSnapshot};
use paceline_limiter::quota::{Dimension, Window};
use serde::{Deserialize, Serialize};

use super::text;
use crate::refilling::outstanding;

/// The usage of one dimension of a key in one window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BucketUsage {
    #[serde(with = "text::dimension")]
    pub(super) dimension: Dimension,
    #[serde(with = "text::window")]
    pub(super) window: Window,
    /// The refill per window, for continuously refilled buckets.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) refill: u64,
    /// The amount held by requests in flight.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) held: u64,
    /// Times and amounts of usage, sorted by time; each time occurs once.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "text::entries")]
    pub(super) taken: Vec<(Timestamp, u64)>,
}

impl BucketUsage {
    pub(super) fn new(dimension: Dimension, window: Window) -> Self {
        Self { dimension, window, refill: 0, held: 0, taken: Vec::new() }
    }

    pub(super) fn matches(&self, dimension: &Dimension, window: Window) -> bool {
        self.dimension == *dimension && self.window == window
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.held == 0
    }

    /// Applies changes.
    pub(super) fn merge(&mut self, changes: &BucketChanges) {
        let grain = self.grain();
        let (refunds, taken): (Vec<_>, Vec<_>) =
            changes.taken.iter().partition(|(_, amount)| *amount < 0);
        let taken = taken.into_iter().map(|(at, amount)| (at, amount.unsigned_abs()));
        self.taken.extend(taken.filter(|(_, amount)| *amount > 0));
        self.taken.sort_unstable_by_key(|(at, _)| *at);
        self.taken = merge_entries(&self.taken, grain);
        for (at, amount) in refunds {
            self.subtract(at, amount.unsigned_abs());
        }
        self.held = changes.held;
        if !changes.taken.is_empty() {
            self.refill = changes.refill;
        }
    }

    /// Converts held amounts to usage at `now`, since the actual usage of these requests will not
    /// be known. Concurrency slots become free.
    pub(super) fn charge_held(&mut self, now: Timestamp) {
        let held = std::mem::take(&mut self.held);
        if held > 0 && self.dimension != Dimension::Concurrency {
            self.taken.push((now, held));
            self.taken = merge_entries(&self.taken, self.grain());
        }
    }

    /// Deletes usage that is older than the window, except usage of a continuously refilled bucket that
    /// has not refilled yet.
    pub(super) fn prune(&mut self, now: Timestamp) {
        let retention = retention(self.window);
        let past = self.taken.partition_point(|(at, _)| *at + retention <= now);

        let next = self.taken.get(past).map_or(now, |entry| entry.0);
        let remaining = outstanding(&self.taken[..past], self.refill, self.window.as_nanos(), next)
            .filter(|_| self.refill > 0);
        self.taken.splice(..past, remaining);
    }

    /// Maps every time; entries that get the same time are merged.
    pub(super) fn retime(&mut self, time: impl Fn(Timestamp) -> Timestamp) {
        self.taken.iter_mut().for_each(|(at, _)| *at = time(*at));
        self.taken = merge_entries(&self.taken, 0);
    }

    pub(super) fn snapshot(&self) -> BucketSnapshot {
        let saved = Saved { taken: self.taken.clone(), held: self.held };
        let mut snapshot = BucketSnapshot::new(self.dimension.clone(), self.window, saved);
        snapshot.refill = self.refill;
        snapshot
    }

    /// Subtracts an amount from usage at about `at`, since a limiter rounds times to 1/64 of a window:
    /// first from the entries before it, latest first, then from the entries after it. A refund without
    /// matching usage is ignored: the usage was at another time, or has expired.
    fn subtract(&mut self, at: Timestamp, mut amount: u64) {
        let about = self.window.as_duration() / TOLERANCE_DIVISOR;
        let next = self.taken.partition_point(|entry| entry.0 <= at);
        let (before, after) = self.taken.split_at_mut(next);
        let near = before.iter_mut().rev().chain(after).filter(|e| e.0.abs_diff(at) <= about);
        for (_, taken) in near {
            let part = amount.min(*taken);
            *taken -= part;
            amount -= part;
        }
        self.taken.retain(|(_, taken)| *taken > 0);
    }

    /// Returns the interval within which entries are merged, in nanoseconds.
    fn grain(&self) -> u64 {
        self.window.as_nanos() / GRAINS_PER_WINDOW
    }
}

impl From<&BucketSnapshot> for BucketUsage {
    fn from(snapshot: &BucketSnapshot) -> Self {
        let mut taken = snapshot.saved.taken.clone();
        taken.retain(|(_, amount)| *amount > 0);
        taken.sort_unstable_by_key(|(at, _)| *at);
        let taken = merge_entries(&taken, 0);
        let (held, refill) = (snapshot.saved.held, snapshot.refill);
        Self { held, taken, refill, ..Self::new(snapshot.dimension.clone(), snapshot.window) }
    }
}

/// Merges the entries within each grain, at the latest of their times. `entries` is sorted by time.
fn merge_entries(entries: &[(Timestamp, u64)], grain: u64) -> Vec<(Timestamp, u64)> {
    let grain = grain.max(1);
    let mut merged: Vec<(Timestamp, u64)> = Vec::with_capacity(entries.len());
    for &(at, amount) in entries {
        match merged.last_mut() {
            Some(last) if last.0.as_nanos() / grain == at.as_nanos() / grain => {
                *last = (at, last.1.saturating_add(amount));
            }
            _ => merged.push((at, amount)),
        }
    }
    merged
}

/// Returns the time for which an entry may count. A day with a clock change has 25 hours, a month up to 31
/// days and one hour, and margins prolong windows by at most a second.
fn retention(window: Window) -> Duration {
    let window = window.as_duration();
    window + window / 24 + Duration::from_secs(1)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(amount: &u64) -> bool {
    *amount == 0
}

/// The number of parts of a window within which entries are merged.
const GRAINS_PER_WINDOW: u64 = 256;

/// A limiter merges usage within this fraction (1/64) of a window into one change.
const TOLERANCE_DIVISOR: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = Window::MINUTE.as_nanos();

    fn bucket() -> BucketUsage {
        BucketUsage::new(Dimension::Tokens, Window::MINUTE)
    }

    fn changes(taken: &[(u64, i64)], held: u64) -> BucketChanges {
        let taken = taken.iter().map(|&(time, amount)| (at(time), amount)).collect();
        BucketChanges::new(Dimension::Tokens, Window::MINUTE, taken, held)
    }

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn close_entries_merge_into_the_latest_time() {
        let mut bucket = bucket();
        let grain = bucket.grain();
        bucket.merge(&changes(&[(grain, 1), (grain + 5, 2), (2 * grain, 4)], 0));
        assert_eq!(bucket.taken, [(at(grain + 5), 3), (at(2 * grain), 4)]);
    }

    #[test]
    fn entries_per_window_are_bounded() {
        let mut bucket = bucket();
        for at in (0..MINUTE).step_by(10_000_000) {
            bucket.merge(&changes(&[(at, 1)], 0));
        }
        assert!(bucket.taken.len() <= 257, "{}", bucket.taken.len());
        assert_eq!(bucket.taken.iter().map(|(_, amount)| amount).sum::<u64>(), 6_000);
    }

    #[test]
    fn refund_reduces_entry_at_same_time() {
        let mut bucket = bucket();
        bucket.merge(&changes(&[(0, 500), (MINUTE / 2, 50)], 0));
        bucket.merge(&changes(&[(0, -200)], 0));
        assert_eq!(bucket.taken, [(at(0), 300), (at(MINUTE / 2), 50)]);
        bucket.merge(&changes(&[(0, -1_000)], 0));
        assert_eq!(bucket.taken, [(at(MINUTE / 2), 50)]);
    }

    #[test]
    fn refund_matches_a_merged_entry() {
        let part = MINUTE / u64::from(TOLERANCE_DIVISOR);
        for (taken, refunded) in [(10, 20), (20, 10), (0, part), (part, 0)] {
            let mut bucket = bucket();
            bucket.merge(&changes(&[(taken, 500)], 0));
            bucket.merge(&changes(&[(refunded, -200)], 0));
            assert_eq!(bucket.taken, [(at(taken), 300)], "{refunded}");
            bucket.merge(&changes(&[(taken + 2 * part, -200)], 0));
            assert_eq!(bucket.taken, [(at(taken), 300)], "a refund without matching usage");
        }
    }

    #[test]
    fn entry_is_kept_for_the_longest_window() {
        let day = Window::DAY.as_nanos();
        let month = Window::MONTH.as_nanos();
        for (window, longest) in [
            (Window::MINUTE, MINUTE + 500_000_000),
            (Window::DAY, 25 * day / 24),
            (Window::MONTH, 31 * day + day / 24),
        ] {
            let mut bucket = BucketUsage {
                taken: vec![(at(1), 1)],
                ..BucketUsage::new(Dimension::Tokens, window)
            };
            bucket.prune(at(longest));
            assert_eq!(bucket.taken.len(), 1, "{window:?}");
            bucket.prune(at(2 * month.max(window.as_nanos())));
            assert!(bucket.taken.is_empty(), "{window:?}");
        }
    }

    #[test]
    fn close_charges_holds_and_drops_concurrency() {
        let mut tokens = bucket();
        tokens.merge(&changes(&[], 70));
        tokens.charge_held(at(5));
        assert_eq!((tokens.held, &*tokens.taken), (0, &[(at(5), 70)][..]));
        let mut in_flight = BucketUsage::new(Dimension::Concurrency, Window::MINUTE);
        in_flight.merge(&changes(&[], 3));
        in_flight.charge_held(at(5));
        assert!(in_flight.is_empty());
    }

    #[test]
    fn amounts_saturate() {
        let mut bucket = BucketUsage { taken: vec![(at(1), u64::MAX)], ..bucket() };
        bucket.merge(&changes(&[(2, i64::MAX)], 0));
        assert_eq!(bucket.taken, [(at(2), u64::MAX)]);
        bucket.merge(&changes(&[(2, i64::MIN)], 0));
        assert_eq!(bucket.taken, [(at(2), u64::MAX - i64::MIN.unsigned_abs())]);
    }
}
