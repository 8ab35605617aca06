//! The prompt cache.

use std::collections::BTreeMap;

/// A cacheable prefix of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    /// The hash of the prefix's content.
    pub(super) hash: u64,
    pub(super) tokens: u64,
}

/// The cached prompts of one model, kept for five minutes after the last use.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The expiry times, by hash.
    until: BTreeMap<u64, u64>,
}

impl Cache {
    /// Returns the tokens of a prompt with these prefixes that are read from the cache, and those
    /// that are written to it.
    pub(super) fn lookup(&self, now: u64, prefixes: &[Prefix]) -> (u64, u64) {
        let cached = |prefix: &&Prefix| self.until.get(&prefix.hash).is_some_and(|at| *at > now);
        let worth = || prefixes.iter().filter(|prefix| prefix.tokens >= MIN_TOKENS);
        let read = worth().filter(cached).map(|prefix| prefix.tokens).max().unwrap_or(0);
        let whole = worth().map(|prefix| prefix.tokens).max().unwrap_or(0);
        (read, whole.saturating_sub(read))
    }

    /// Caches the prefixes of a prompt.
    pub(super) fn insert(&mut self, now: u64, prefixes: &[Prefix]) {
        self.until.retain(|_, until| *until > now);
        for prefix in prefixes.iter().filter(|prefix| prefix.tokens >= MIN_TOKENS) {
            self.until.insert(prefix.hash, now.saturating_add(LIFETIME_NS));
        }
    }
}

/// The minimum size of a cached prompt, for most of Anthropic's models.
const MIN_TOKENS: u64 = 1_024;

/// Five minutes after the last use, in nanoseconds.
const LIFETIME_NS: u64 = 300_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_prefix_is_read_until_expiry() {
        let prefixes = [Prefix { hash: 1, tokens: 1_500 }, Prefix { hash: 2, tokens: 2_000 }];
        let mut cache = Cache::default();
        assert_eq!(cache.lookup(0, &prefixes), (0, 2_000));
        cache.insert(0, &prefixes[..1]);
        assert_eq!(cache.lookup(LIFETIME_NS - 1, &prefixes), (1_500, 500));
        assert_eq!(cache.lookup(LIFETIME_NS, &prefixes), (0, 2_000));
        let small = [Prefix { hash: 3, tokens: MIN_TOKENS - 1 }];
        cache.insert(0, &small);
        assert_eq!(cache.lookup(0, &small), (0, 0));
    }
}
