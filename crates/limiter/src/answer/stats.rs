use std::sync::Arc;

use serde::Serialize;
use smallvec::SmallVec;

use super::learned::LearnedLimit;
use super::utilization::Utilization;
use crate::engine::{Bucket, Level, Rule, Shortfall, Wait};
use crate::quota::{Cost, Dimension, Limit, Window};
use crate::refusal::RefusalKind;
use crate::timestamp::Timestamp;

/// The statistics of one key at one point in time.
///
/// They serialize with times and windows in nanoseconds. Look up a limit with [`get`](Self::get):
///
/// ```
/// use paceline_limiter::quota::{Dimension, Window};
/// use paceline_limiter::{Cost, Limiter, Quota};
/// let limiter = Limiter::builder().quota("k", Quota::new().rpm(10).tpm(500)).build()?;
/// let permit = limiter.try_acquire("k", &Cost::new().tokens(100))?;
/// let stats = limiter.stats("k");
/// assert_eq!(stats.get(&Dimension::Tokens).unwrap().available, 400);
/// assert_eq!(stats.get_window(&Dimension::Requests, Window::MINUTE).unwrap().used, 1);
/// # drop(permit);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KeyStats {
    /// The limits of the key, in the order of its quota.
    pub limits: Vec<LimitStats>,
    /// The time of the state from which the limits are computed: the time of the call or, if a
    /// [`Backend`](crate::limiter::Backend) keeps the buckets, that of its last answer about the key. `None` if
    /// it has not answered about the key: the usage is unknown then, and shown as none.
    pub as_of: Option<Timestamp>,
    /// The number of requests in the key's queue.
    pub waiting: usize,
    /// The time at which the first request in the queue fits, if it is known: not if that depends on requests in
    /// flight. Requests in flight that end may let it fit earlier.
    pub next_at: Option<Timestamp>,
    /// The end of the cool-down after a refusal by the provider.
    pub cooling_until: Option<Timestamp>,
    /// The kind of the refusal that set the end of the cool-down; `None` if no refusal to this process has.
    pub cooling_kind: Option<RefusalKind>,
    /// The provider's words, while it refuses the account and all requests of the key are answered with them.
    pub account_refused: Option<Box<str>>,
    /// The limits that were measured by the provider's answers, and hold beside those of the quota.
    pub learned: Vec<LearnedLimit>,
    /// The used parts of the account's windows, as the provider states them for subscriptions.
    pub utilization: Vec<Utilization>,
    /// The outage of the server, during which one request at a time tests whether it accepts requests again.
    pub outage: Option<Outage>,
}

/// An outage of the server: the requests of a key fail one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outage {
    /// The time of the failure that started it.
    pub since: Timestamp,
    /// The HTTP status of the last failure; `None` without a response.
    pub status: Option<u16>,
    /// The provider's words in the last failure, which may hold parts of the prompt, or the error without a response.
    pub text: Box<str>,
}

/// The statistics of one limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LimitStats {
    /// The dimension that is counted.
    pub dimension: Dimension,
    /// The limit's amount now.
    pub limit: u64,
    /// The limit's amount in the key's quota, which is larger than `limit` while the key is reduced after
    /// a refusal.
    pub original: u64,
    /// The limit's window.
    pub window: Window,
    /// The amount that counts against the limit now, rounded up.
    pub used: u64,
    /// The amount that requests in flight have reserved.
    pub held: u64,
    /// The amount that a request can reserve now, less the margin; rounded down.
    pub available: u64,
    /// The time at which all usage has expired. In the past if the
    /// limit is unused.
    pub fresh_at: Timestamp,
}

impl KeyStats {
    /// Returns the limit of a dimension; of several with different windows, the one with the least
    /// available.
    pub fn get(&self, dimension: &Dimension) -> Option<&LimitStats> {
        let limits = self.limits.iter().filter(|limit| limit.dimension == *dimension);
        limits.min_by_key(|limit| limit.available)
    }

    /// Returns the limit of a dimension with this window.
    pub fn get_window(&self, dimension: &Dimension, window: Window) -> Option<&LimitStats> {
        self.limits.iter().find(|limit| limit.dimension == *dimension && limit.window == window)
    }

    /// Returns the limit that a cost exceeds, by these statistics.
    pub(crate) fn short(&self, rules: &[Rule], cost: &Cost) -> Option<Shortfall> {
        let full = |(rule, limit): (&Rule, &LimitStats)| rule.amount(cost) > limit.available;
        let rule = rules.iter().zip(&self.limits).position(full)?;
        let wait = if rules[rule].can_admit(cost) { Wait::Unknown } else { Wait::Never };
        Some(Shortfall { rule, wait })
    }
}

/// The limits of one key and the levels of their buckets, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitLevels {
    /// The current limits; `None` if the key has none.
    pub rules: Option<Arc<[Rule]>>,
    levels: SmallVec<[Level; 3]>,
    /// The time of the levels.
    pub at: Timestamp,
}

impl LimitLevels {
    /// Reads the levels of buckets; levels that a backend knows replace them.
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
    pub fn rules(&self) -> &[Rule] {
        self.rules.as_deref().unwrap_or_default()
    }

    /// Returns the limits with the levels of their buckets.
    pub fn limits(&self) -> impl Iterator<Item = (&Rule, &Level)> {
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
