use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use smallvec::SmallVec;

use super::asked::Allowed;
use crate::config::{KeyLimit, Serve};
use tollgate::limiter::{DefaultLimits, Limiter};
use tollgate::quota::{Algorithm, Dimension, Limit, Quota, Window};

/// The limits of a key that no quota names.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) max_requests: u32,
    pub(super) max_in_queue: u32,
    pub(super) window: Duration,
    algorithm: Algorithm,
    pub(super) made: DefaultLimits,
}

/// The limits of all keys, as the configuration says them.
#[derive(Debug)]
pub(super) struct Table {
    base: Arc<Limits>,
    keys: Vec<KeyLimit>,
    /// Which of `keys` are about this very key, in their order.
    exact: HashMap<String, Vec<usize>>,
    /// Which are about all keys that they match.
    regexes: Vec<usize>,
    /// Those that come of several together, and of a request's own number: made once.
    merged: RwLock<HashMap<Parts, Arc<Limits>>>,
    /// What requests may say for themselves.
    pub(super) allowed: Allowed,
}

/// Which of `keys` apply, and what a request has set.
type Parts = (SmallVec<[usize; 4]>, Option<u32>);

impl Table {
    pub(super) fn new(serve: &Serve, limiter: &Limiter) -> Self {
        let mut exact: HashMap<String, Vec<usize>> = HashMap::new();
        let mut regexes = Vec::new();
        for (at, key) in serve.keys.iter().enumerate() {
            match &key.regex {
                Some(_) => regexes.push(at),
                None => exact.entry(key.pattern.clone()).or_default().push(at),
            }
        }
        let amounts = (serve.max_requests, serve.max_requests_in_queue, serve.window);
        Self {
            base: Arc::new(Limits::new(limiter, amounts, &serve.algorithm)),
            keys: serve.keys.clone(),
            exact,
            regexes,
            merged: RwLock::default(),
            allowed: Allowed {
                rate: serve.requests_can_set_rate,
                queue: serve.requests_can_mod_queue,
            },
        }
    }

    /// Whether both say the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let same = self.keys == other.keys && self.allowed == other.allowed;
        same && self.base.says(&other.base)
    }

    /// The limits of a key, for a request that may say itself how many are let in per window.
    pub(super) fn of(&self, (key, own): (&str, Option<u32>), limiter: &Limiter) -> Arc<Limits> {
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

    fn merge(&self, parts: Parts, limiter: &Limiter) -> Arc<Limits> {
        let (matching, own) = &parts;
        if matching.is_empty() && own.is_none() {
            return Arc::clone(&self.base);
        }
        if let Some(limits) = self.merged.read().get(&parts) {
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
        let amounts = (own.unwrap_or(requests), queue, window);
        let limits = Limits::new(limiter, amounts, &self.base.algorithm);
        let is_named = matching.iter().any(|&at| self.keys[at].regex.is_none());
        let limits = Arc::new(if is_named { limits.for_named_keys() } else { limits });
        let mut merged = self.merged.write();
        // Requests may say any number.
        if merged.len() >= MOST_MERGED {
            merged.clear();
        }
        merged.insert(parts, Arc::clone(&limits));
        limits
    }
}

impl Limits {
    fn new(
        limiter: &Limiter,
        (max_requests, max_in_queue, window): (u32, u32, Duration),
        algorithm: &Algorithm,
    ) -> Self {
        let span = Window::new(window).unwrap_or(Window::SECOND);
        let limit = Limit::new(Dimension::Requests, max_requests.into(), span);
        let limit = limit.map(|limit| limit.with_algorithm(*algorithm));
        let quota = limit.map_or_else(Quota::new, |limit| Quota::new().limit(limit));
        let (made, algorithm) = (DefaultLimits::new(limiter, &quota), *algorithm);
        Self { max_requests, max_in_queue, window, algorithm, made }
    }

    /// The same for keys that the configuration names, which always have a place.
    fn for_named_keys(self) -> Self {
        Self { made: self.made.for_named_keys(), ..self }
    }

    fn says(&self, other: &Self) -> bool {
        let said = |limits: &Self| (limits.max_requests, limits.max_in_queue, limits.window);
        said(self) == said(other) && self.algorithm == other.algorithm
    }
}

/// More than a configuration has patterns that meet, and little to make again.
const MOST_MERGED: usize = 4_096;
