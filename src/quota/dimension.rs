use alloc::sync::Arc;
use core::fmt;

/// What a limit counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Dimension {
    /// Requests sent.
    Requests,
    /// Tokens, as the provider's own total-token limit (TPM) counts them.
    Tokens,
    /// Tokens of the prompt, where the provider limits them apart (ITPM).
    InputTokens,
    /// Generated tokens, where the provider limits them apart (OTPM).
    OutputTokens,
    /// Requests in flight.
    Concurrency,
    /// Anything else, by name: images, pages, dollars.
    Custom(Arc<str>),
}

impl Dimension {
    /// All but those of the caller's own.
    #[doc(hidden)]
    pub const KNOWN: [Self; 5] =
        [Self::Requests, Self::Tokens, Self::InputTokens, Self::OutputTokens, Self::Concurrency];

    /// A dimension of the caller's own.
    pub fn custom(name: &str) -> Self {
        Self::Custom(name.into())
    }

    /// Where a [`Cost`](super::Cost) keeps the amount of this dimension; custom ones are behind all
    /// others.
    pub(crate) const fn column(&self) -> usize {
        match self {
            Self::Requests => 0,
            Self::Tokens => 1,
            Self::InputTokens => 2,
            Self::OutputTokens => 3,
            Self::Concurrency => 4,
            Self::Custom(_) => usize::MAX,
        }
    }

    /// The name in events, errors, metrics and configuration: `requests`, `tokens`,
    /// `input_tokens`, `output_tokens`, `concurrency`, or the custom name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Concurrency => "concurrency",
            Self::Custom(name) => name,
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
