/// What a response reports, in tokens.
///
/// `input` is the whole prompt: uncached tokens, cache reads and cache writes, whatever the
/// provider's own field counts.
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
}

impl Usage {
    /// Input and output together, saturating.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}
