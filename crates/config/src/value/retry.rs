use core::num::NonZeroU32;

/// Retries of transient failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryConfig {
    /// The maximum number of attempts of a request, including the first.
    pub attempts: NonZeroU32,
}
