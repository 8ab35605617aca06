use std::collections::{HashMap, VecDeque};

use compact_str::CompactString;
use smallvec::SmallVec;

use super::error::BuildError;
use super::limiter::Limiter;
use super::sync::RwLock;

/// What the requests of each key have put out lately, and what the next is to be expected to.
///
/// For the last 64 of a key, and the ten thousand keys that were used last; not for a restart.
#[derive(Debug)]
pub(super) struct Outputs {
    quantile: Quantile,
    keys: RwLock<Generations>,
}

/// A part of 1, in millionths: above 0, at most 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantile(u32);

/// Keys used lately, and those used before: when there are too many of the former, the latter are
/// forgotten.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<CompactString, Recent>,
    old: HashMap<CompactString, Recent>,
}

/// The last outputs of a key, in tokens.
#[derive(Debug, Default)]
struct Recent {
    seen: VecDeque<u64>,
    expected: Option<u64>,
}

impl Limiter {
    /// How many tokens a request of this key is to be expected to put out: so many that of its last
    /// 64 outputs the share given by [`output_quantile`](super::Builder::output_quantile) (nine of
    /// ten) had no more. `None` before five were seen.
    ///
    /// For providers that charge real output; see
    /// [`Estimate::with_output`](crate::provider::Estimate::with_output).
    ///
    /// ```
    /// let limiter = tollgate::limiter::Limiter::builder().build()?;
    /// (1..=10).for_each(|tokens| limiter.output_seen("claude", tokens * 100));
    /// assert_eq!(limiter.expected_output("claude"), Some(900));
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    pub fn expected_output(&self, key: &str) -> Option<u64> {
        self.core.outputs.expected(key)
    }

    /// A request of this key has put out so many tokens.
    pub fn output_seen(&self, key: &str, tokens: u64) {
        self.core.outputs.seen(key, tokens);
    }
}

impl Outputs {
    pub(super) fn new(quantile: Quantile) -> Self {
        Self { quantile, keys: RwLock::new(Generations::default()) }
    }

    fn expected(&self, key: &str) -> Option<u64> {
        let keys = self.keys.read();
        keys.young.get(key).or_else(|| keys.old.get(key))?.expected
    }

    fn seen(&self, key: &str, tokens: u64) {
        self.keys.write().key(key).push(tokens, self.quantile);
    }
}

impl Quantile {
    pub(super) fn new(quantile: f64) -> Result<Self, BuildError> {
        let parts =
            super::reduction::millionths(quantile).filter(|parts| (1..=ONE).contains(parts));
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
    fn key(&mut self, key: &str) -> &mut Recent {
        if self.young.len() >= KEYS / 2 && !self.young.contains_key(key) {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        self.young.entry(key.into()).or_insert_with(|| old.remove(key).unwrap_or_default())
    }
}

impl Recent {
    fn push(&mut self, tokens: u64, quantile: Quantile) {
        if self.seen.len() == KEPT {
            self.seen.pop_front();
        }
        self.seen.reserve_exact(KEPT - self.seen.len());
        self.seen.push_back(tokens);
        if self.seen.len() >= ENOUGH {
            let mut sorted: SmallVec<[u64; KEPT]> = self.seen.iter().copied().collect();
            sorted.sort_unstable();
            self.expected = Some(sorted[quantile.rank(sorted.len()) - 1]);
        }
    }
}

const ONE: u32 = 1_000_000;

/// Keys whose outputs are kept, at most; at least half as many are.
const KEYS: usize = 10_000;

/// Outputs of a key that are kept.
const KEPT: usize = 64;

/// So few say nothing of the next.
const ENOUGH: usize = 5;
