//! The usage of a request.

/// The usage that a response reports, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimulatedUsage {
    /// Tokens of the prompt, cached ones included.
    pub input: u64,
    /// Generated tokens.
    pub output: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
    /// Prompt tokens written to the cache.
    pub cache_write: u64,
}
