use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use smallvec::SmallVec;

use super::rate_query::AllowedParameters;
use crate::config::{KeyLimit, Serve};
use paceline::limiter::{DefaultLimits, Limiter};
use paceline::quota::{Algorithm, Dimension, Limit, Quota, Window};

/// The limits of a key without a quota.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) max_requests: u32,
    pub(super) max_in_queue: u32,
    pub(super) window: Duration,
    algorithm: Algorithm,
    pub(super) default_limits: DefaultLimits,
}

/// The configured limits of keys without a quota.
#[derive(Debug)]
pub(super) struct LimitTable {
    base: Arc<Limits>,
    keys: Vec<KeyLimit>,
    /// The indexes in `keys` of exact patterns, by key.
    exact: HashMap<String, Vec<usize>>,
    /// The indexes in `keys` of regular expressions.
    regexes: Vec<usize>,
    /// A cache of limits merged from several entries and the `maxRequests` of a request.
    merged: RwLock<HashMap<MergeKey, Arc<Limits>>>,
    /// The parameters that requests may set.
    pub(super) allowed: AllowedParameters,
}

/// The matching indexes in `keys`, and the `maxRequests` of the request.
type MergeKey = (SmallVec<[usize; 4]>, Option<u32>);

impl LimitTable {
    pub(super) fn new(serve: &Serve, limiter: &Limiter) -> Self {
        let mut exact: HashMap<String, Vec<usize>> = HashMap::new();
        let mut regexes = Vec::new();
        for (at, key) in serve.keys.iter().enumerate() {
            match &key.regex {
                Some(_) => regexes.push(at),
                None => exact.entry(key.pattern.clone()).or_default().push(at),
            }
        }
        Self {
            base: Arc::new(Limits::new(
                limiter,
                serve.max_requests,
                serve.max_requests_in_queue,
                serve.window,
                &serve.algorithm,
            )),
            keys: serve.keys.clone(),
            exact,
            regexes,
            merged: RwLock::default(),
            allowed: AllowedParameters {
                can_set_rate: serve.requests_can_set_rate,
                can_set_queue: serve.requests_can_mod_queue,
            },
        }
    }

    /// Returns true if both tables have the same limits.
    pub(super) fn is_equivalent(&self, other: &Self) -> bool {
        let same = self.keys == other.keys && self.allowed == other.allowed;
        same && self.base.is_equivalent(&other.base)
    }

    /// Returns the limits of a key, with the `maxRequests` of the request if it has one.
    pub(super) fn of(&self, key: &str, own: Option<u32>, limiter: &Limiter) -> Arc<Limits> {
        match own {
            None if self.keys.is_empty() => Arc::clone(&self.base),
            _ => self.merge((self.matching(key), own), limiter),
        }
    }

    fn matching(&self, key: &str) -> SmallVec<[usize; 4]> {
        let found =
            |&at: &usize| self.keys[at].regex.as_ref().is_some_and(|regex| regex.is_match(key));
        let exact = self.exact.get(key).into_iter().flatten().copied();
        let mut matching: SmallVec<[usize; 4]> =
            exact.chain(self.regexes.iter().copied().filter(found)).collect();
        matching.sort_unstable();
        matching
    }

    fn merge(&self, merge_key: MergeKey, limiter: &Limiter) -> Arc<Limits> {
        let (matching, own) = &merge_key;
        if matching.is_empty() && own.is_none() {
            return Arc::clone(&self.base);
        }
        if let Some(limits) = self.merged.read().get(&merge_key) {
            return Arc::clone(limits);
        }
        let base = (self.base.max_requests, self.base.max_in_queue, self.base.window);
        let (requests, queue, window) =
            matching.iter().fold(base, |(requests, queue, window), &at| {
                let key = &self.keys[at];
                (
                    key.max_requests_per_window.unwrap_or(requests),
                    key.max_requests_in_queue.unwrap_or(queue),
                    key.window.unwrap_or(window),
                )
            });
        let requests = own.unwrap_or(requests);
        let limits = Limits::new(limiter, requests, queue, window, &self.base.algorithm);
        let is_named = matching.iter().any(|&at| self.keys[at].regex.is_none());
        let limits = Arc::new(if is_named { limits.for_named_keys() } else { limits });
        let mut merged = self.merged.write();
        // Requests can set arbitrary numbers, so the cache is bounded.
        if merged.len() >= MAX_MERGED {
            merged.clear();
        }
        merged.insert(merge_key, Arc::clone(&limits));
        limits
    }
}

impl Limits {
    fn new(
        limiter: &Limiter,
        max_requests: u32,
        max_in_queue: u32,
        window: Duration,
        algorithm: &Algorithm,
    ) -> Self {
        let span = Window::new(window).unwrap_or(Window::SECOND);
        let limit = Limit::new(Dimension::Requests, max_requests.into(), span);
        let limit = limit.map(|limit| limit.with_algorithm(*algorithm));
        let quota = limit.map_or_else(Quota::new, |limit| Quota::new().limit(limit));
        let (default_limits, algorithm) = (DefaultLimits::new(limiter, &quota), *algorithm);
        Self { max_requests, max_in_queue, window, algorithm, default_limits }
    }

    /// Marks the limits for keys that the configuration names exactly, which don't count towards the
    /// maximum number of keys.
    fn for_named_keys(self) -> Self {
        Self { default_limits: self.default_limits.for_named_keys(), ..self }
    }

    fn is_equivalent(&self, other: &Self) -> bool {
        let values = |limits: &Self| (limits.max_requests, limits.max_in_queue, limits.window);
        values(self) == values(other) && self.algorithm == other.algorithm
    }
}

/// More than the combinations of patterns in practice; rebuilding them is cheap.
const MAX_MERGED: usize = 4_096;
