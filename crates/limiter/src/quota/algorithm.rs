use serde::{Deserialize, Serialize};

/// The algorithm that counts a limit over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Algorithm {
    /// A bucket that refills continuously, as OpenAI, Anthropic and Groq count. Its capacity is the
    /// amount of the limit, or its burst.
    TokenBucket,
    /// A window that ends now: the usage in any period of its length never exceeds the amount. Safe for
    /// every provider with the same amount and window, regardless of the provider's algorithm.
    SlidingWindow,
    /// A window that starts at the first use, and again at the first use after its end.
    FixedWindow,
    /// A window that starts at every multiple of its length since the Unix epoch: with each minute,
    /// hour or day of a clock in UTC.
    ClockWindow,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 4] =
        [Self::TokenBucket, Self::SlidingWindow, Self::FixedWindow, Self::ClockWindow];

    /// Returns the name in configuration and in stores, such as `token_bucket`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TokenBucket => "token_bucket",
            Self::SlidingWindow => "sliding_window",
            Self::FixedWindow => "fixed_window",
            Self::ClockWindow => "clock_window",
        }
    }
}
