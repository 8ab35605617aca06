//! Prompts that need not be read again.

use std::collections::BTreeMap;

/// A beginning of a prompt that is to be cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    /// Of all that it holds.
    pub(super) hash: u64,
    pub(super) tokens: u64,
}

/// The cached prompts of one model. What is not used for five minutes is forgotten.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Until when, by hash.
    until: BTreeMap<u64, u64>,
}

impl Cache {
    /// Tokens of a prompt with these prefixes that are read from the cache, and tokens that would
    /// be written to it.
    pub(super) fn lookup(&self, now: u64, prefixes: &[Prefix]) -> (u64, u64) {
        let cached = |prefix: &&Prefix| self.until.get(&prefix.hash).is_some_and(|at| *at > now);
        let worth = || prefixes.iter().filter(|prefix| prefix.tokens >= MIN_TOKENS);
        let read = worth().filter(cached).map(|prefix| prefix.tokens).max().unwrap_or(0);
        let whole = worth().map(|prefix| prefix.tokens).max().unwrap_or(0);
        (read, whole.saturating_sub(read))
    }

    /// Keeps the prefixes of a prompt that was answered.
    pub(super) fn insert(&mut self, now: u64, prefixes: &[Prefix]) {
        self.until.retain(|_, until| *until > now);
        for prefix in prefixes.iter().filter(|prefix| prefix.tokens >= MIN_TOKENS) {
            self.until.insert(prefix.hash, now.saturating_add(LIFETIME_NS));
        }
    }
}

/// Anthropic caches no prompt of fewer tokens, with most of its models.
const MIN_TOKENS: u64 = 1_024;

/// Five minutes, from the last use.
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
