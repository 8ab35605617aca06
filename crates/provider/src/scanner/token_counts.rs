use paceline_limiter::quota::Usage;

/// The meaning of a token count that a response states.
///
/// The counts of a response make its [`Usage`]. Its input is the first of these that is stated:
/// `Input`; `UncachedInput`, `CacheRead` and `CacheWrite` together; `FallbackInput`; `Total` less the
/// output. `ToolInput` is added. Its output is the first of `PrimaryOutput`, `Output`,
/// `FallbackOutput` and `PartialOutput`; `Reasoning` is added, and so is `ReasoningDetail` if the total
/// contains it in addition to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenCount {
    /// The input, including tokens read from a cache.
    Input,
    /// The output, under a name that takes precedence over `Output`: some servers add zeros under the
    /// names of another format.
    PrimaryOutput,
    /// The input, without the tokens that are stated as `CacheRead` and `CacheWrite`.
    UncachedInput,
    /// The output.
    Output,
    /// Input and output together.
    Total,
    /// The part of the input that was read from a cache.
    CachedInput,
    /// Tokens read from a cache, in addition to `UncachedInput`.
    CacheRead,
    /// Tokens written to a cache, in addition to `UncachedInput`.
    CacheWrite,
    /// The part of `CacheWrite` that the cache keeps for an hour.
    LongCacheWrite,
    /// Reasoning tokens, if they are stated in addition to the output.
    Reasoning,
    /// Reasoning tokens that are part of the output, unless `Total` is the sum of input, output and them
    /// (xAI).
    ReasoningDetail,
    /// Input tokens that tools added, if they are stated in addition to the input.
    ToolInput,
    /// The input, for responses that state no other.
    FallbackInput,
    /// The output, for responses that state no other.
    FallbackOutput,
    /// The output so far, stated before the end of a response, as in Anthropic's `message_start`. Any
    /// other output takes precedence.
    PartialOutput,
}

/// The counts of an output, by precedence.
const OUTPUTS: [TokenCount; 4] = [
    TokenCount::PrimaryOutput,
    TokenCount::Output,
    TokenCount::FallbackOutput,
    TokenCount::PartialOutput,
];

/// The number of different counts.
const COUNTS: usize = TokenCount::PartialOutput as usize + 1;

/// The counts that a response has stated.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TokenCounts {
    /// Zeros where none is stated.
    counts: [u64; COUNTS],
    /// A bit for each that is stated.
    stated: u16,
    /// True if the counts are a whole usage, even if none is stated.
    is_whole: bool,
    /// True if two different outputs were stated.
    grew: bool,
}

impl TokenCounts {
    pub(crate) fn set(&mut self, count: TokenCount, tokens: u64) {
        self.counts[count as usize] = tokens;
        self.stated |= 1 << count as usize;
    }

    /// Marks the counts as a whole usage, even if none is stated.
    pub(super) fn set_whole(&mut self) {
        self.is_whole = true;
    }

    /// Adds newer counts. Older ones that are not stated again stay, unless the newer ones are a whole
    /// usage.
    pub(super) fn update(&mut self, newer: &Self) {
        let differs = |count: &TokenCount| {
            let (old, new) = (self.of(*count), newer.of(*count));
            old.is_some() && new.is_some() && old != new
        };
        let grew = self.grew || OUTPUTS.iter().any(differs);
        if newer.is_whole {
            *self = Self { grew, ..*newer };
            return;
        }
        self.grew = grew;
        for (at, (old, new)) in self.counts.iter_mut().zip(newer.counts).enumerate() {
            *old = if newer.stated >> at & 1 == 1 { new } else { *old };
        }
        self.stated |= newer.stated;
    }

    /// Returns true if two different outputs were stated, so that a later one may follow.
    pub(super) fn has_grown(&self) -> bool {
        self.grew
    }

    /// Returns true if the output is final, even if the rest of the response is missing: its name occurs
    /// only at the end of a response, and it has not changed. Servers that state a running count (vLLM
    /// with `continuous_usage_stats`) begin with zero.
    pub(super) fn is_final(&self) -> bool {
        let output = OUTPUTS.iter().find_map(|count| Some((*count, self.of(*count)?)));
        !self.grew
            && output.is_some_and(|(at, tokens)| at != TokenCount::PartialOutput && tokens > 0)
    }

    /// Returns the usage that the counts make; `None` if none was stated.
    pub(super) fn usage(&self) -> Option<Usage> {
        let or_zero = |count| self.of(count).unwrap_or(0);
        let cached = or_zero(TokenCount::CacheRead).saturating_add(or_zero(TokenCount::CacheWrite));
        let input = self
            .of(TokenCount::Input)
            .or_else(|| Some(self.of(TokenCount::UncachedInput)?.saturating_add(cached)))
            .or(self.of(TokenCount::FallbackInput));
        let output = OUTPUTS.into_iter().find_map(|count| self.of(count));
        let total = self.of(TokenCount::Total);
        if input.is_none() && output.is_none() && total.is_none() && !self.is_whole {
            return None;
        }
        // Embeddings may state only a total, which is then the input.
        let rest = total.unwrap_or(0).saturating_sub(output.unwrap_or(0));
        let cache_read = self.of(TokenCount::CachedInput);
        let input = input.unwrap_or(rest);
        let output = output.unwrap_or(0);
        let is_apart =
            |detail: &u64| total == Some(input.saturating_add(output).saturating_add(*detail));
        let apart = self.of(TokenCount::ReasoningDetail).filter(is_apart).unwrap_or(0);
        let reasoning = or_zero(TokenCount::Reasoning).saturating_add(apart);
        Some(Usage {
            input: input.saturating_add(or_zero(TokenCount::ToolInput)),
            output: output.saturating_add(reasoning),
            cache_read: cache_read.unwrap_or(or_zero(TokenCount::CacheRead)),
            cache_write: or_zero(TokenCount::CacheWrite),
            long_cache_write: or_zero(TokenCount::LongCacheWrite),
        })
    }

    fn of(&self, count: TokenCount) -> Option<u64> {
        (self.stated >> count as usize & 1 == 1).then(|| self.counts[count as usize])
    }
}
