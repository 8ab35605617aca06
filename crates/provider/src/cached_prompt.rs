use paceline_limiter::quota::Cost;

/// The charge for tokens of a prompt that are read from a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheReads {
    Charged,
    /// Not charged to `Tokens`.
    FreeOfTotal,
    /// Charged neither to `Tokens` nor to `InputTokens`.
    Free,
}

/// The prompt of a request, of which the provider may read a part from a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedPrompt {
    reads: CacheReads,
    /// True if the request marks a part that is kept in a cache.
    is_marked: bool,
}

impl CachedPrompt {
    /// A prompt that is charged in full.
    pub const CHARGED: Self = Self { reads: CacheReads::Charged, is_marked: false };

    /// Returns the terms of a prompt; `marks_cache` returns true if the request marks a part of it.
    pub(super) fn new(reads: CacheReads, marks_cache: impl FnOnce() -> bool) -> Self {
        Self { reads, is_marked: reads != CacheReads::Charged && marks_cache() }
    }

    /// Returns true if tokens that are read from a cache aren't charged.
    pub fn may_be_free(self) -> bool {
        self.reads != CacheReads::Charged
    }

    /// Marks the part of a cost that a read from a cache saves as a guess, so that a prompt above a limit isn't refused:
    /// if the request marks a part of its prompt, or earlier ones were `seen` to be read from a cache.
    pub fn guess(self, cost: Cost, seen: bool) -> Cost {
        match self.reads {
            CacheReads::FreeOfTotal if seen || self.is_marked => cost.guessed_tokens(u64::MAX),
            CacheReads::Free if seen || self.is_marked => {
                cost.guessed_input_tokens().guessed_tokens(u64::MAX)
            }
            _ => cost,
        }
    }
}
