use core::num::NonZeroU32;

/// Whether requests that fail in passing are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// How often a request is sent at most, the first time included.
    pub attempts: NonZeroU32,
}
