use alloc::sync::Arc;

use super::Dimension;
use super::token_kinds::TokenKinds;

/// What a request takes in each dimension, as reserved before it is sent. One request, unless said
/// otherwise; it always takes one of [`Dimension::Concurrency`].
///
/// ```
/// use tollgate::quota::{Cost, Dimension};
/// let cost = Cost::new().input_tokens(900).output_tokens(300).custom("images", 2);
/// assert_eq!(cost.amount(&Dimension::custom("images")), 2);
/// assert_eq!(cost.amount(&Dimension::Concurrency), 1);
/// ```
#[derive(Debug, Clone)]
pub struct Cost {
    /// In the order of [`Dimension::column`].
    amounts: [u64; COLUMNS],
    guessed_tokens: u64,
    guessed_output: u64,
    named: TokenKinds,
    custom: Option<Arc<Vec<Custom>>>,
}

type Custom = (Box<str>, u64);

/// The dimensions that are always there.
const COLUMNS: usize = 5;

const TOKENS: usize = Dimension::Tokens.column();
const OUTPUT: usize = Dimension::OutputTokens.column();

impl Cost {
    /// One request and nothing else.
    pub const fn new() -> Self {
        Self {
            amounts: [1, 0, 0, 0, 1],
            guessed_tokens: 0,
            guessed_output: 0,
            named: TokenKinds::NONE,
            custom: None,
        }
    }

    /// Sets the number of requests.
    #[must_use]
    pub fn requests(mut self, amount: u64) -> Self {
        self.amounts[0] = amount;
        self
    }

    /// Sets the tokens that the provider's total-token limit is charged.
    #[must_use]
    pub fn tokens(mut self, amount: u64) -> Self {
        self.set(&Dimension::Tokens, amount);
        self
    }

    /// Sets the input tokens.
    #[must_use]
    pub fn input_tokens(mut self, amount: u64) -> Self {
        self.set(&Dimension::InputTokens, amount);
        self
    }

    /// Sets the output tokens.
    #[must_use]
    pub fn output_tokens(mut self, amount: u64) -> Self {
        self.set(&Dimension::OutputTokens, amount);
        self
    }

    /// Says how much of the tokens is a guess: of limits that hold less than the whole amount, a
    /// request reserves as much of the guess as they can hold, and isn't refused for it.
    ///
    /// ```
    /// use tollgate::{Cost, Limiter, Quota};
    /// let limiter = Limiter::builder().quota("k", Quota::new().tpm(1_000)).build()?;
    /// let known = Cost::new().tokens(1_034);
    /// assert!(limiter.try_acquire("k", &known).is_err());
    /// let permit = limiter.try_acquire("k", &known.guessed_tokens(1_024)).unwrap();
    /// assert_eq!(permit.cost(), &Cost::new().tokens(1_000));
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    #[must_use]
    pub fn guessed_tokens(mut self, amount: u64) -> Self {
        self.guessed_tokens = amount.min(self.amounts[TOKENS]);
        self
    }

    /// Says how much of the output tokens is a guess, as [`guessed_tokens`](Self::guessed_tokens)
    /// does of the tokens.
    #[must_use]
    pub fn guessed_output_tokens(mut self, amount: u64) -> Self {
        self.guessed_output = amount.min(self.amounts[OUTPUT]);
        self
    }

    /// Sets the amount of a custom dimension.
    #[must_use]
    pub fn custom(mut self, name: &str, amount: u64) -> Self {
        let mut all = self.custom.take().map_or_else(Vec::new, Arc::unwrap_or_clone);
        match all.iter_mut().find(|(n, _)| **n == *name) {
            Some((_, old)) => *old = amount,
            None => all.push((name.into(), amount)),
        }
        self.custom = Some(Arc::new(all));
        self
    }

    /// The amount in one dimension; 1 for [`Dimension::Concurrency`].
    #[inline]
    pub fn amount(&self, dimension: &Dimension) -> u64 {
        match dimension {
            Dimension::Custom(name) => self.custom_amount(name),
            _ => self.amounts[dimension.column()],
        }
    }

    /// All tokens, whether they are counted together or input and output apart.
    pub fn all_tokens(&self) -> u64 {
        let apart = [Dimension::InputTokens, Dimension::OutputTokens];
        let apart = apart.iter().map(|named| self.amount(named)).fold(0, u64::saturating_add);
        self.amount(&Dimension::Tokens).max(apart)
    }

    /// Sets the amount in one dimension, none of it a guess.
    #[doc(hidden)]
    #[inline]
    pub fn set(&mut self, dimension: &Dimension, amount: u64) {
        match dimension {
            Dimension::Custom(name) => *self = core::mem::take(self).custom(name, amount),
            _ => self.amounts[dimension.column()] = amount,
        }
        match dimension {
            Dimension::Tokens => self.guessed_tokens = 0,
            Dimension::OutputTokens => self.guessed_output = 0,
            _ => {}
        }
        self.named = self.named.with(dimension);
    }

    /// The same cost with its guesses clipped to these amounts; `None` if they are no larger.
    pub(crate) fn clip_guesses(&self, tokens: u64, output: u64) -> Option<Self> {
        let clipped_tokens = clip(self.amounts[TOKENS], self.guessed_tokens, tokens);
        let clipped_output = clip(self.amounts[OUTPUT], self.guessed_output, output);
        if (clipped_tokens, clipped_output) == (self.amounts[TOKENS], self.amounts[OUTPUT]) {
            return None;
        }
        let mut clipped = self.clone();
        clipped.guessed_tokens -= self.amounts[TOKENS] - clipped_tokens;
        clipped.guessed_output -= self.amounts[OUTPUT] - clipped_output;
        (clipped.amounts[TOKENS], clipped.amounts[OUTPUT]) = (clipped_tokens, clipped_output);
        Some(clipped)
    }

    /// Which kinds of tokens it names, in whatever amount.
    #[inline]
    pub(crate) fn named(&self) -> TokenKinds {
        self.named
    }

    /// Whether it names a custom dimension.
    #[inline]
    pub(crate) fn has_customs(&self) -> bool {
        self.custom.is_some()
    }

    /// The same charge, but with the amounts of `reserved` in the dimensions that it doesn't name;
    /// `None` if it names all of them.
    #[inline]
    pub(crate) fn completed(&self, reserved: &Self) -> Option<Self> {
        let is_complete = reserved.named.is_within(self.named) && !reserved.has_customs();
        if is_complete { None } else { self.completed_by(reserved) }
    }

    #[cold]
    fn completed_by(&self, reserved: &Self) -> Option<Self> {
        let customs = || reserved.customs().filter(|(name, _)| !self.names_custom(name));
        if reserved.named.is_within(self.named) && customs().next().is_none() {
            return None;
        }
        let mut completed = self.clone();
        for dimension in [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens] {
            if !self.named.has(&dimension) && reserved.named.has(&dimension) {
                completed.set(&dimension, reserved.amount(&dimension));
            }
        }
        Some(customs().fold(completed, |cost, (name, amount)| cost.custom(name, amount)))
    }

    /// The same without the custom dimensions that are not `kept`.
    #[doc(hidden)]
    #[must_use]
    pub fn with_customs(&self, kept: impl Fn(&str) -> bool) -> Self {
        let bare = Self { custom: None, ..self.clone() };
        let customs = self.customs().filter(|(name, _)| kept(name));
        customs.fold(bare, |cost, (name, amount)| cost.custom(name, amount))
    }

    /// Whether it names the dimension, in whatever amount; requests and concurrency always.
    pub(crate) fn names(&self, dimension: &Dimension) -> bool {
        match dimension {
            Dimension::Custom(name) => self.names_custom(name),
            Dimension::Requests | Dimension::Concurrency => true,
            _ => self.named.has(dimension),
        }
    }

    fn names_custom(&self, custom: &str) -> bool {
        self.customs().any(|(name, _)| name == custom)
    }

    /// The amount in the dimension of this column; `None` for a custom one.
    #[inline]
    pub(crate) fn column(&self, column: usize) -> Option<u64> {
        self.amounts.get(column).copied()
    }

    /// The custom dimensions and their amounts.
    pub fn customs(&self) -> impl Iterator<Item = (&str, u64)> {
        self.custom.iter().flat_map(|all| &**all).map(|(name, amount)| (&**name, *amount))
    }

    fn custom_amount(&self, name: &str) -> u64 {
        self.customs().find(|(n, _)| *n == name).map_or(0, |(_, amount)| amount)
    }
}

/// An amount, clipped to `most` as far as it is a guess.
fn clip(amount: u64, guessed: u64, most: u64) -> u64 {
    amount.min(most).max(amount - guessed)
}

impl PartialEq for Cost {
    /// By the amounts alone: a guess equals what is known. Without a call or a branch for what every settling compares.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.amounts.iter().zip(&other.amounts);
        pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0 && self.custom == other.custom
    }
}

impl Eq for Cost {}

impl Default for Cost {
    fn default() -> Self {
        Self::new()
    }
}
