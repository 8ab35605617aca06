use std::collections::BTreeMap;

use crate::engine::Saved;
use crate::limiter::{BucketSnapshot, KeySnapshot, NamedQuota, QuotaOrigin};
use crate::quota::{Dimension, Quota, Window};
use crate::store::State;
use crate::timestamp::Timestamp;

/// What was read, and what of it was not taken as it stood.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct ImportedState {
    pub(in crate::store) state: State,
    /// Entries that no longer count, by their own time.
    pub(in crate::store) past: u64,
    /// Entries of a time yet to come, which count as now.
    pub(in crate::store) ahead: u64,
    /// Entries of less than nothing, left out.
    pub(in crate::store) negative: u64,
}

/// What go-ratelimit allows a model; 0 is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModelLimits {
    pub(super) rpm: u64,
    pub(super) tpm: u64,
    pub(super) rpd: u64,
}

/// What it knows to be used of a model: times in nanoseconds since the epoch, which may lie before
/// it (a time that was never set is the year 1), and amounts.
#[derive(Debug, Default)]
pub(super) struct ModelUsage {
    pub(super) requests: Vec<i128>,
    pub(super) tokens: Vec<(i128, i64)>,
    /// When the day started, and how many requests there were since.
    pub(super) day: Option<(i128, i64)>,
}

impl ImportedState {
    /// Makes a state of it, by a clock that says `now`.
    pub(super) fn new(
        limits: BTreeMap<String, ModelLimits>,
        models: BTreeMap<String, ModelUsage>,
        now: Timestamp,
    ) -> Self {
        let mut imported = Self::default();
        let quotas = limits.into_iter().map(|(name, limits)| {
            let quota = Quota::new().rpm(limits.rpm).tpm(limits.tpm).rpd(limits.rpd);
            NamedQuota::new(name, quota, QuotaOrigin::Set)
        });
        imported.state.quotas = quotas.collect();
        for (name, model) in models {
            let buckets = imported.buckets(&model, now);
            if !buckets.is_empty() {
                imported.state.keys.push(KeySnapshot::new(name, buckets));
            }
        }
        imported
    }

    fn buckets(&mut self, model: &ModelUsage, now: Timestamp) -> Vec<BucketSnapshot> {
        let requests = model.requests.iter().map(|at| (*at, 1));
        let buckets = [
            self.bucket(Dimension::Requests, Window::MINUTE, requests, now),
            self.bucket(Dimension::Requests, Window::DAY, model.day, now),
            self.bucket(Dimension::Tokens, Window::MINUTE, model.tokens.iter().copied(), now),
        ];
        buckets.into_iter().filter(|bucket| !bucket.saved.taken.is_empty()).collect()
    }

    fn bucket(
        &mut self,
        dimension: Dimension,
        window: Window,
        entries: impl IntoIterator<Item = (i128, i64)>,
        now: Timestamp,
    ) -> BucketSnapshot {
        let mut imported: BTreeMap<Timestamp, u64> = BTreeMap::new();
        for (at, amount) in entries {
            if let Some((at, amount)) = self.entry(at, amount, window, now) {
                let sum = imported.entry(at).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        let saved = Saved { taken: imported.into_iter().collect(), held: 0 };
        BucketSnapshot::new(dimension, window, saved)
    }

    /// An entry as it counts now, if it does.
    fn entry(
        &mut self,
        at: i128,
        amount: i64,
        window: Window,
        now: Timestamp,
    ) -> Option<(Timestamp, u64)> {
        if amount <= 0 {
            self.negative += u64::from(amount < 0);
            return None;
        }
        if at > i128::from(now.as_nanos()) {
            self.ahead += 1;
            return Some((now, amount.unsigned_abs()));
        }
        // Our windows are longer than theirs by a margin of up to a second.
        let window = i128::from(window.as_nanos()) + i128::from(Window::SECOND.as_nanos());
        match u64::try_from(at) {
            Ok(nanos) if at + window > i128::from(now.as_nanos()) => {
                Some((Timestamp::from_nanos(nanos), amount.unsigned_abs()))
            }
            _ => {
                self.past += 1;
                None
            }
        }
    }
}
