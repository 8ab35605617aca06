use std::num::NonZeroU64;

use super::{Dimension, Window};

/// An amount of one dimension per window, or at once for [`Dimension::Concurrency`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    dimension: Dimension,
    amount: NonZeroU64,
    window: Window,
    algorithm: Option<Algorithm>,
}

impl Limit {
    /// `amount` of `dimension` in every `window`. A zero amount is no limit at all: `None`.
    pub fn new(dimension: Dimension, amount: u64, window: Window) -> Option<Self> {
        let amount = NonZeroU64::new(amount)?;
        Some(Self { dimension, amount, window, algorithm: None })
    }

    /// The same limit, counted by this algorithm whatever the provider's profile says.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = Some(algorithm);
        self
    }

    /// What is counted.
    pub fn dimension(&self) -> &Dimension {
        &self.dimension
    }

    /// How much is allowed per window.
    pub fn amount(&self) -> u64 {
        self.amount.get()
    }

    /// The window; without meaning for [`Dimension::Concurrency`].
    pub fn window(&self) -> Window {
        self.window
    }

    /// The algorithm, where the limit names one.
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.algorithm
    }
}

/// How a limit is counted over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Refills all the time at amount / window. What OpenAI, Anthropic and Groq do.
    TokenBucket {
        /// What a full bucket holds; the limit's whole amount where it is `None`.
        burst: Option<NonZeroU64>,
    },
    /// Never more than the amount in any window of that length: safe against a provider of the same
    /// amount and window, whatever its own algorithm.
    SlidingWindow,
    /// Starts at the first use, and again at the first use after its end.
    FixedWindow,
}

impl Algorithm {
    /// A token bucket that holds the limit's whole amount.
    pub const TOKEN_BUCKET: Self = Self::TokenBucket { burst: None };
}
