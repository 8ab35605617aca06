use paceline_limiter::quota::Usage;

/// The prices of one token of each kind, in millionths of a micro-dollar: 1 is a dollar for 10^12 tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Rates {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    /// The price of writing a token to a cache that is kept for longer.
    pub(super) long_cache_write: u64,
}

impl Rates {
    /// Returns the rates if a token that isn't cached costs the same in all cases.
    pub(super) fn uniform(input: u64, output: u64) -> Self {
        Self { input, output, cache_read: input, cache_write: input, long_cache_write: input }
    }

    /// Returns the cost of a usage in micro-dollars, rounded up.
    pub(super) fn cost(&self, usage: &Usage) -> u64 {
        let cache_read = usage.cache_read.min(usage.input);
        let cache_write = usage.cache_write.min(usage.input - cache_read);
        let long_cache_write = usage.long_cache_write.min(cache_write);
        micro_dollars([
            (usage.input - cache_read - cache_write, self.input),
            (cache_read, self.cache_read),
            (cache_write - long_cache_write, self.cache_write),
            (long_cache_write, self.long_cache_write),
            (usage.output, self.output),
        ])
    }

    /// Returns the dearer rate of each kind of token.
    pub(super) fn or_dearer(&self, other: &Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_read: self.cache_read.max(other.cache_read),
            cache_write: self.cache_write.max(other.cache_write),
            long_cache_write: self.long_cache_write.max(other.long_cache_write),
        }
    }

    /// Returns the most that this many tokens can cost, in micro-dollars.
    pub(super) fn most(&self, input: u64, output: u64) -> u64 {
        let rates = [self.input, self.cache_read, self.cache_write, self.long_cache_write];
        let dearest = rates.into_iter().max().unwrap_or(0);
        micro_dollars([(input, dearest), (output, self.output)])
    }
}

/// Returns the sum of these numbers of tokens at their rates, rounded up to a micro-dollar.
fn micro_dollars<const N: usize>(parts: [(u64, u64); N]) -> u64 {
    let costs = parts.map(|(tokens, rate)| u128::from(tokens) * u128::from(rate));
    let sum = costs.into_iter().fold(0, u128::saturating_add);
    u64::try_from(sum.div_ceil(RATES_PER_MICRO_DOLLAR)).unwrap_or(u64::MAX)
}

const RATES_PER_MICRO_DOLLAR: u128 = 1_000_000;
