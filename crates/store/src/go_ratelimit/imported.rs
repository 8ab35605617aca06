use std::collections::BTreeMap;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::Saved;
use paceline_limiter::limiter::{BucketSnapshot, KeySnapshot, NamedQuota, QuotaOrigin};
use paceline_limiter::quota::{Dimension, Quota, Window};

use crate::State;

/// The imported state, and the number of entries that were skipped or adjusted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportedState {
    pub(crate) state: State,
    /// Expired entries, which are skipped.
    pub(crate) past: u64,
    /// Entries dated in the future, which count from now on.
    pub(crate) ahead: u64,
    /// Entries with a negative amount, which are skipped.
    pub(crate) negative: u64,
}

/// The limits of a model in go-ratelimit; 0 is unlimited.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModelLimits {
    pub(super) rpm: u64,
    pub(super) tpm: u64,
    pub(super) rpd: u64,
}

/// The usage of a model in go-ratelimit: times in nanoseconds since the Unix epoch, and amounts.
/// Unset times are in the year 1, so times may be negative.
#[derive(Debug, Default)]
pub(super) struct ModelUsage {
    pub(super) requests: Vec<i128>,
    pub(super) tokens: Vec<(i128, i64)>,
    /// The start of the day, and the number of requests since.
    pub(super) day: Option<(i128, i64)>,
}

impl ImportedState {
    /// Converts limits and usage to a state at time `now`.
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

    /// Converts an entry; returns `None` if it does not count at `now`.
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
        // A margin prolongs paceline's windows by up to a second.
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
