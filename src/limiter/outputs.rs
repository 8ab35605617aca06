use std::collections::{HashMap, VecDeque};

use crate::quota::Key;

use crate::answer::error::BuildError;
use crate::key::adapt::millionths;
use crate::sync::{RwLock, SHARDS};

/// What the requests of each key have put out lately, and what the next is to be expected to.
///
/// For the last 64 of a key, and about the ten thousand keys that put something out last; asking
/// keeps no key. Not for a restart.
#[derive(Debug)]
pub(super) struct Outputs {
    quantile: Quantile,
    /// Parts of all keys, each behind a lock of its own.
    shards: Box<[RwLock<Generations>]>,
}

/// A part of 1, in millionths: above 0, at most 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantile(u32);

/// Keys used lately, and those used before: when there are too many of the former, the latter are
/// forgotten.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Key, Recent>,
    old: HashMap<Key, Recent>,
}

/// The last outputs of a key, in tokens.
#[derive(Debug)]
struct Recent {
    seen: VecDeque<u64>,
    /// The same, least first.
    sorted: Vec<u64>,
}

impl Outputs {
    pub(super) fn new(quantile: Quantile) -> Self {
        let shards = std::iter::repeat_with(|| RwLock::new(Generations::default()));
        Self { quantile, shards: shards.take(SHARDS).collect() }
    }

    /// Returns the output that a request of this key, with this hash, is expected to have.
    pub(super) fn expected(&self, hash: u64, key: &str) -> Option<u64> {
        self.shard(hash).read().expected(key, self.quantile)
    }

    /// Notes the output of a request of this key.
    pub(super) fn seen(&self, hash: u64, key: &str, tokens: u64) {
        self.shard(hash).write().push(key, tokens);
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

    /// The rank, from 1, of the least of so many values that as large a part of them doesn't exceed.
    fn rank(self, values: usize) -> usize {
        (values * self.0 as usize).div_ceil(ONE as usize).max(1)
    }
}

impl Generations {
    fn expected(&self, key: &str, quantile: Quantile) -> Option<u64> {
        self.young.get(key).or_else(|| self.old.get(key))?.expected(quantile)
    }

    fn push(&mut self, key: &str, tokens: u64) {
        if let Some(recent) = self.young.get_mut(key) {
            return recent.push(tokens);
        }
        let mut recent = self.old.remove(key).unwrap_or_else(Recent::new);
        recent.push(tokens);
        if self.young.len() >= KEYS / SHARDS / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key.into(), recent);
    }
}

impl Recent {
    /// With room for all that will be kept: a response allocates nothing.
    fn new() -> Self {
        Self { seen: VecDeque::with_capacity(KEPT), sorted: Vec::with_capacity(KEPT) }
    }

    fn expected(&self, quantile: Quantile) -> Option<u64> {
        let enough = self.sorted.len() >= ENOUGH;
        enough.then(|| self.sorted[quantile.rank(self.sorted.len()) - 1])
    }

    fn push(&mut self, tokens: u64) {
        if self.seen.len() == KEPT
            && let Some(oldest) = self.seen.pop_front()
        {
            self.sorted.remove(self.sorted.partition_point(|&seen| seen < oldest));
        }
        self.seen.push_back(tokens);
        self.sorted.insert(self.sorted.partition_point(|&seen| seen < tokens), tokens);
    }
}

const ONE: u32 = 1_000_000;

/// Keys whose outputs are kept, at most; of a flood at least about half as many are.
const KEYS: usize = 10_000;

/// Outputs of a key that are kept.
const KEPT: usize = 64;

/// So few say nothing of the next.
const ENOUGH: usize = 5;
