use alloc::sync::Arc;
use core::fmt;

use super::usd::Usd;

/// A quantity that limits count.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Dimension {
    /// Requests sent.
    Requests,
    /// Tokens, as the provider's own total-token limit (TPM) counts them.
    Tokens,
    /// Tokens of the prompt, if the provider limits them separately (ITPM).
    InputTokens,
    /// Generated tokens, if the provider limits them separately (OTPM).
    OutputTokens,
    /// Requests in flight.
    Concurrency,
    /// A custom quantity, such as images or pages. [`usd`](Self::usd) is money.
    Custom(Arc<str>),
}

impl Dimension {
    /// All dimensions except custom ones.
    pub(crate) const KNOWN: [Self; 5] =
        [Self::Requests, Self::Tokens, Self::InputTokens, Self::OutputTokens, Self::Concurrency];

    /// Creates a custom dimension.
    #[inline]
    pub fn custom(name: &str) -> Self {
        Self::Custom(name.into())
    }

    /// Creates the dimension of money, named `usd`: micro-dollars, which are millionths of a US dollar. The
    /// layer of `paceline` prices requests in it. [`Usd`](super::Usd) is its unit where an
    /// amount of money is given: [`Limit::usd`](super::Limit::usd), [`Cost::usd`](super::Cost::usd).
    #[inline]
    pub fn usd() -> Self {
        Self::custom(USD)
    }

    /// Returns `true` for [`usd`](Self::usd).
    #[inline]
    pub fn is_usd(&self) -> bool {
        self.as_str() == USD
    }

    /// Displays an amount: the number, or dollars for [`usd`](Self::usd).
    #[inline]
    pub(crate) fn amount(&self, amount: u64) -> impl fmt::Display + use<> {
        match self.is_usd() {
            true => Amount::Usd(Usd::from_micros(amount)),
            false => Amount::Number(amount),
        }
    }

    /// Displays an amount with its unit: `100 tokens`, `$1.25`.
    #[inline]
    pub(crate) fn quantity(&self, amount: u64) -> impl fmt::Display + '_ {
        let unit = if self.is_usd() { "" } else { self.as_str() };
        Quantity { amount: self.amount(amount), unit }
    }

    /// Returns the index of this dimension in a [`Cost`](super::Cost); above all others for custom
    /// dimensions.
    #[inline]
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

    /// Returns the dimension of a [`column`](Self::column); `None` for custom dimensions.
    #[inline]
    pub(crate) const fn of_column(column: usize) -> Option<Self> {
        match column {
            0 => Some(Self::Requests),
            1 => Some(Self::Tokens),
            2 => Some(Self::InputTokens),
            3 => Some(Self::OutputTokens),
            4 => Some(Self::Concurrency),
            _ => None,
        }
    }

    /// Returns the name in events, errors, metrics and configuration: `requests`, `tokens`,
    /// `input_tokens`, `output_tokens`, `concurrency`, or the custom name.
    #[inline]
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

/// An amount as it is displayed.
enum Amount {
    Number(u64),
    Usd(Usd),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Usd(usd) => usd.fmt(f),
        }
    }
}

/// An amount with its unit, which is empty for money.
struct Quantity<'a, A> {
    amount: A,
    unit: &'a str,
}

impl<A: fmt::Display> fmt::Display for Quantity<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.amount.fmt(f)?;
        if self.unit.is_empty() { Ok(()) } else { write!(f, " {}", self.unit) }
    }
}

/// The name of the dimension of money.
pub const USD: &str = "usd";

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Dimension {
    /// Serializes as [`as_str`](Self::as_str).
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
