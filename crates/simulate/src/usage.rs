/// The usage that a response reports, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimulatedUsage {
    /// Tokens of the whole prompt, cached ones included.
    pub input: u64,
    /// Generated tokens.
    pub output: u64,
    /// Tokens of the prompt that were read from the cache.
    pub cache_read: u64,
    /// Tokens of the prompt that were written to the cache.
    pub cache_write: u64,
}
