use std::collections::{HashMap, VecDeque};

use crate::quota::Key;

use crate::answer::error::BuildError;
use crate::key::adapt::millionths;
use crate::sync::{RwLock, SHARDS};

/// The recent outputs of each key, from which the output of its next request is estimated.
///
/// Keeps the last 64 outputs of a key, for the at most 10,000 keys with the latest outputs. A lookup
/// doesn't keep a key. Not kept across a restart.
#[derive(Debug)]
pub(super) struct Outputs {
    quantile: Quantile,
    /// The keys, in shards with a lock each.
    shards: Box<[RwLock<Generations>]>,
}

/// A quantile in millionths: above 0 and at most 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantile(u32);

/// The keys of one shard. When there are too many young keys, they become the old ones, and the old ones
/// are dropped.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Key, RecentOutputs>,
    old: HashMap<Key, RecentOutputs>,
}

/// The last outputs of a key, in tokens.
#[derive(Debug)]
struct RecentOutputs {
    /// In order of arrival.
    latest: VecDeque<u64>,
    /// The same outputs, in ascending order.
    sorted: Vec<u64>,
    /// The number of answers since the last one that read from a cache.
    since_cache_read: Option<usize>,
}

impl Outputs {
    pub(super) fn new(quantile: Quantile) -> Self {
        let shards = std::iter::repeat_with(|| RwLock::new(Generations::default()));
        Self { quantile, shards: shards.take(SHARDS).collect() }
    }

    /// Returns the expected output of a request of this key, which has this hash, and whether one of the last read a
    /// part of its prompt from a cache.
    pub(super) fn expected(&self, hash: u64, key: &str) -> (Option<u64>, bool) {
        self.shard(hash).read().expected(key, self.quantile)
    }

    /// Records the output of a request of this key, which has this hash, and whether it read a part of its prompt from a
    /// cache.
    pub(super) fn record(&self, hash: u64, key: &str, tokens: u64, reads_cache: bool) {
        self.shard(hash).write().push(key, tokens, reads_cache);
    }

    fn shard(&self, hash: u64) -> &RwLock<Generations> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }
}

impl Quantile {
    pub(super) fn new(quantile: f64) -> Result<Self, BuildError> {
        let parts = millionths(quantile).filter(|parts| (1..=ONE).contains(parts));
        let error = || BuildError::OutOfRange {
            name: "quantile of outputs",
            value: quantile.to_string(),
            range: "above 0 and at most 1",
        };
        parts.map(Self).ok_or_else(error)
    }

    /// Returns the rank, from 1, of the lowest of `values` values that covers this quantile of them.
    fn rank(self, values: usize) -> usize {
        (values * self.0 as usize).div_ceil(ONE as usize).max(1)
    }
}

impl Generations {
    fn expected(&self, key: &str, quantile: Quantile) -> (Option<u64>, bool) {
        let recent = self.young.get(key).or_else(|| self.old.get(key));
        recent.map_or((None, false), |recent| (recent.expected(quantile), recent.reads_cache()))
    }

    fn push(&mut self, key: &str, tokens: u64, reads_cache: bool) {
        if let Some(recent) = self.young.get_mut(key) {
            return recent.push(tokens, reads_cache);
        }
        let mut recent = self.old.remove(key).unwrap_or_else(RecentOutputs::new);
        recent.push(tokens, reads_cache);
        if self.young.len() >= KEYS / SHARDS / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key.into(), recent);
    }
}

impl RecentOutputs {
    /// Allocates space for all outputs that will be kept, so that later responses allocate nothing.
    fn new() -> Self {
        let (latest, sorted) = (VecDeque::with_capacity(KEPT), Vec::with_capacity(KEPT));
        Self { latest, sorted, since_cache_read: None }
    }

    fn reads_cache(&self) -> bool {
        self.since_cache_read.is_some_and(|answers| answers < KEPT)
    }

    fn expected(&self, quantile: Quantile) -> Option<u64> {
        let has_enough = self.sorted.len() >= ENOUGH;
        has_enough.then(|| self.sorted[quantile.rank(self.sorted.len()) - 1])
    }

    fn push(&mut self, tokens: u64, reads_cache: bool) {
        self.since_cache_read = match reads_cache {
            true => Some(0),
            false => self.since_cache_read.map(|answers| answers.saturating_add(1)),
        };
        if self.latest.len() == KEPT
            && let Some(oldest) = self.latest.pop_front()
        {
            self.sorted.remove(self.sorted.partition_point(|&output| output < oldest));
        }
        self.latest.push_back(tokens);
        self.sorted.insert(self.sorted.partition_point(|&output| output < tokens), tokens);
    }
}

const ONE: u32 = 1_000_000;

/// The largest number of keys whose outputs are kept. A flood of keys leaves at least about
/// half as many.
const KEYS: usize = 10_000;

/// The number of outputs that are kept of a key.
const KEPT: usize = 64;

/// The number of outputs from which an output is estimated.
const ENOUGH: usize = 5;
