/// The tokens that a response reports.
///
/// `input` is the whole prompt: uncached tokens, cache reads and cache writes, even if the provider's field
/// counts only some of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the whole prompt.
    pub input: u64,
    /// Generated tokens, reasoning included.
    pub output: u64,
    /// Tokens of the prompt that were read from the provider's cache.
    pub cache_read: u64,
    /// Tokens of the prompt that were written to the provider's cache.
    pub cache_write: u64,
    /// The part of `cache_write` that the cache keeps for an hour, at a price of its own (Anthropic).
    pub long_cache_write: u64,
}

impl Usage {
    /// Returns the sum of input and output, saturating.
    #[inline]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}
