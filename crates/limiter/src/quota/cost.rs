use alloc::sync::Arc;

use super::dimension::{Dimension, USD};
use super::token_kinds::TokenKinds;
use super::usage::Usage;
use super::usd::Usd;

/// The amounts that a request reserves in each dimension before it is sent. The default is one request. The
/// amount of [`Dimension::Concurrency`] is always 1.
///
/// ```
/// use paceline_limiter::quota::{Cost, Dimension};
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
    /// True if the input is a guess: all of it may be read from a cache.
    guesses_input: bool,
    custom: Option<Arc<Vec<CustomAmount>>>,
}

/// The amount of a custom dimension.
#[derive(Debug, Clone)]
pub(crate) struct CustomAmount {
    pub(crate) name: Box<str>,
    pub(crate) amount: u64,
    /// True if the amount needs no limit that counts it.
    pub(crate) is_optional: bool,
}

/// The number of built-in dimensions.
const COLUMNS: usize = 5;

const CONCURRENCY: usize = Dimension::Concurrency.column();
const TOKENS: usize = Dimension::Tokens.column();
const INPUT: usize = Dimension::InputTokens.column();
const OUTPUT: usize = Dimension::OutputTokens.column();

impl Cost {
    /// Creates the cost of one request, without tokens.
    #[inline]
    pub const fn new() -> Self {
        Self {
            amounts: [1, 0, 0, 0, 1],
            guessed_tokens: 0,
            guessed_output: 0,
            named: TokenKinds::NONE,
            guesses_input: false,
            custom: None,
        }
    }

    /// Sets the number of requests.
    #[must_use]
    #[inline]
    pub fn requests(mut self, amount: u64) -> Self {
        self.amounts[0] = amount;
        self
    }

    /// Sets the tokens that count against the provider's limit of total tokens.
    #[must_use]
    #[inline]
    pub fn tokens(mut self, amount: u64) -> Self {
        self.set(&Dimension::Tokens, amount);
        self
    }

    /// Sets the input tokens.
    #[must_use]
    #[inline]
    pub fn input_tokens(mut self, amount: u64) -> Self {
        self.set(&Dimension::InputTokens, amount);
        self
    }

    /// Sets the output tokens.
    #[must_use]
    #[inline]
    pub fn output_tokens(mut self, amount: u64) -> Self {
        self.set(&Dimension::OutputTokens, amount);
        self
    }

    /// Marks a part of the tokens as a guess. If a limit can't hold the full amount, the request reserves only
    /// as much of the guess as fits, instead of being refused.
    ///
    /// ```
    /// use paceline_limiter::{Cost, Limiter, Quota};
    /// let limiter = Limiter::builder().quota("k", Quota::new().tpm(1_000)).build()?;
    /// let known = Cost::new().tokens(1_034);
    /// assert!(limiter.try_acquire("k", &known).is_err());
    /// let permit = limiter.try_acquire("k", &known.guessed_tokens(1_024)).unwrap();
    /// assert_eq!(permit.cost(), &Cost::new().tokens(1_000));
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn guessed_tokens(mut self, amount: u64) -> Self {
        self.guessed_tokens = amount.min(self.amounts[TOKENS]);
        self
    }

    /// Marks all input tokens as a guess, as [`guessed_tokens`](Self::guessed_tokens) does for a part of all tokens:
    /// those of a prompt whose beginning may be read from a cache, which isn't charged.
    #[must_use]
    #[inline]
    pub fn guessed_input_tokens(mut self) -> Self {
        self.guesses_input = true;
        self
    }

    /// Marks a part of the output tokens as a guess, as [`guessed_tokens`](Self::guessed_tokens) does for
    /// tokens.
    #[must_use]
    #[inline]
    pub fn guessed_output_tokens(mut self, amount: u64) -> Self {
        self.guessed_output = amount.min(self.amounts[OUTPUT]);
        self
    }

    /// Sets the amount of a custom dimension. A limit must count it, except for money; an amount that the
    /// provider's profile added stays optional.
    #[must_use]
    #[inline]
    pub fn custom(mut self, name: &str, amount: u64) -> Self {
        self.set_custom(name, amount, name == USD);
        self
    }

    /// Sets the amount of a custom dimension that needs no limit, such as one that the caller doesn't know of.
    /// An amount that the caller set still needs one.
    #[inline]
    pub(crate) fn set_optional(&mut self, name: &str, amount: u64) {
        self.set_custom(name, amount, true);
    }

    fn set_custom(&mut self, name: &str, amount: u64, is_optional: bool) {
        let mut all = self.custom.take().map_or_else(Vec::new, Arc::unwrap_or_clone);
        match all.iter_mut().find(|custom| *custom.name == *name) {
            Some(custom) => custom.amount = amount,
            None => all.push(CustomAmount { name: name.into(), amount, is_optional }),
        }
        self.custom = Some(Arc::new(all));
    }

    /// Sets the money that a request costs at most, where no layer prices it.
    ///
    /// ```
    /// use paceline_limiter::quota::{Cost, Dimension, Usd};
    /// let cost = Cost::new().usd(Usd::from_micros(1_200));
    /// assert_eq!(cost.amount(&Dimension::usd()), 1_200);
    /// ```
    #[must_use]
    #[inline]
    pub fn usd(self, amount: Usd) -> Self {
        self.custom(USD, amount.as_micros())
    }

    /// Returns the amount in a dimension; 1 for [`Dimension::Concurrency`].
    #[inline]
    pub fn amount(&self, dimension: &Dimension) -> u64 {
        match dimension {
            Dimension::Custom(name) => self.custom_amount(name),
            _ => self.amounts[dimension.column()],
        }
    }

    /// Returns all tokens: the total, or the sum of input and output if that is larger.
    #[inline]
    pub fn all_tokens(&self) -> u64 {
        let apart = [Dimension::InputTokens, Dimension::OutputTokens];
        let apart = apart.iter().map(|named| self.amount(named)).fold(0, u64::saturating_add);
        self.amount(&Dimension::Tokens).max(apart)
    }

    /// Sets the amount in a dimension, without a guess.
    #[inline]
    pub(crate) fn set(&mut self, dimension: &Dimension, amount: u64) {
        match dimension {
            Dimension::Custom(name) => *self = core::mem::take(self).custom(name, amount),
            _ => self.amounts[dimension.column()] = amount,
        }
        match dimension {
            Dimension::Tokens => self.guessed_tokens = 0,
            Dimension::OutputTokens => self.guessed_output = 0,
            Dimension::InputTokens => self.guesses_input = false,
            _ => {}
        }
        self.named = self.named.with(dimension);
    }

    /// Returns the cost with its guesses clipped to these amounts, or `None` if nothing changes.
    #[inline]
    pub(crate) fn clip_guesses(&self, tokens: u64, input: u64, output: u64) -> Option<Self> {
        if self.guessed_tokens == 0 && self.guessed_output == 0 && !self.guesses_input {
            return None;
        }
        self.clip_guesses_to(tokens, input, output)
    }

    fn clip_guesses_to(&self, tokens: u64, input: u64, output: u64) -> Option<Self> {
        let guessed_input = if self.guesses_input { self.amounts[INPUT] } else { 0 };
        let clipped_input = clip(self.amounts[INPUT], guessed_input, input);
        let clipped_tokens = clip(self.amounts[TOKENS], self.guessed_tokens, tokens);
        let clipped_output = clip(self.amounts[OUTPUT], self.guessed_output, output);
        let clipped_amounts = [clipped_tokens, clipped_input, clipped_output];
        if clipped_amounts == [TOKENS, INPUT, OUTPUT].map(|column| self.amounts[column]) {
            return None;
        }
        let mut clipped = self.clone();
        clipped.guessed_tokens -= self.amounts[TOKENS] - clipped_tokens;
        clipped.guessed_output -= self.amounts[OUTPUT] - clipped_output;
        [clipped.amounts[TOKENS], clipped.amounts[INPUT], clipped.amounts[OUTPUT]] =
            clipped_amounts;
        Some(clipped)
    }

    /// Returns the amount of money alone, without a request: the part that counts to a budget beside the request's
    /// own keys.
    #[inline]
    pub(crate) fn money(&self) -> Self {
        let Self { custom, .. } = self.with_customs(|name| name == USD);
        Self { amounts: [0; COLUMNS], custom, ..Self::new() }
    }

    /// Returns `true` if the cost is the [`money`](Self::money) of another one.
    #[inline]
    pub(crate) fn is_money(&self) -> bool {
        self.amounts[CONCURRENCY] == 0
    }

    /// Returns the requests, tokens, input tokens and output tokens.
    #[inline]
    pub(crate) fn main_amounts(&self) -> [u64; 4] {
        let [requests, tokens, input, output, _] = self.amounts;
        [requests, tokens, input, output]
    }

    /// Returns the sum of two costs, without guesses. The amount of [`Dimension::Concurrency`] stays 1.
    #[inline]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.merged(other, u64::saturating_add)
    }

    /// Returns the larger amount of two costs in each dimension, without guesses.
    #[inline]
    pub(crate) fn max(&self, other: &Self) -> Self {
        self.merged(other, u64::max)
    }

    fn merged(&self, other: &Self, merge: impl Fn(u64, u64) -> u64) -> Self {
        let mut merged =
            Self { guessed_tokens: 0, guessed_output: 0, guesses_input: false, ..self.clone() };
        for column in 0..CONCURRENCY {
            merged.amounts[column] = merge(merged.amounts[column], other.amounts[column]);
        }
        merged.named = self.named.and(other.named);
        for CustomAmount { name, amount, is_optional } in other.custom_amounts() {
            let amount = merge(merged.custom_amount(name), *amount);
            merged.set_custom(name, amount, *is_optional);
        }
        merged
    }

    /// Returns the token dimensions that were set, even to 0.
    #[inline]
    pub(crate) fn named(&self) -> TokenKinds {
        self.named
    }

    /// Returns `true` if a custom dimension was set.
    #[inline]
    pub(crate) fn has_customs(&self) -> bool {
        self.custom.is_some()
    }

    /// Returns the charge with the amounts of `reserved` in the dimensions that it doesn't set, or `None` if it
    /// sets all of them.
    #[inline]
    pub(crate) fn completed(&self, reserved: &Self) -> Option<Self> {
        let is_complete = reserved.named.is_within(self.named) && !reserved.has_customs();
        if is_complete { None } else { self.completed_by(reserved) }
    }

    #[cold]
    fn completed_by(&self, reserved: &Self) -> Option<Self> {
        let customs = || reserved.custom_amounts().filter(|own| !self.names_custom(&own.name));
        if reserved.named.is_within(self.named) && customs().next().is_none() {
            return None;
        }
        let mut completed = self.clone();
        for dimension in [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens] {
            if !self.named.has(&dimension) && reserved.named.has(&dimension) {
                completed.set(&dimension, reserved.amount(&dimension));
            }
        }
        for CustomAmount { name, amount, is_optional } in customs() {
            completed.set_custom(name, *amount, *is_optional);
        }
        Some(completed)
    }

    /// Returns the cost with only those custom dimensions for which `kept` returns `true`.
    #[must_use]
    #[inline]
    pub(crate) fn with_customs(&self, kept: impl Fn(&str) -> bool) -> Self {
        let customs = self.custom_amounts().filter(|custom| kept(&custom.name)).cloned();
        let customs: Vec<_> = customs.collect();
        Self { custom: (!customs.is_empty()).then(|| Arc::new(customs)), ..self.clone() }
    }

    /// Returns `true` if the dimension was set, even to 0. Requests and concurrency are always set.
    #[inline]
    pub(crate) fn names(&self, dimension: &Dimension) -> bool {
        match dimension {
            Dimension::Custom(name) => self.names_custom(name),
            Dimension::Requests | Dimension::Concurrency => true,
            _ => self.named.has(dimension),
        }
    }

    /// Returns `true` if an amount of money was set, even 0.
    #[inline]
    pub(crate) fn states_usd(&self) -> bool {
        self.names_custom(USD)
    }

    fn names_custom(&self, custom: &str) -> bool {
        self.custom_amounts().any(|own| *own.name == *custom)
    }

    /// Returns the amount in the dimension of this column, or `None` for a custom dimension.
    #[inline]
    pub(crate) fn column(&self, column: usize) -> Option<u64> {
        self.amounts.get(column).copied()
    }

    /// Returns the custom dimensions and their amounts.
    #[inline]
    pub fn customs(&self) -> impl Iterator<Item = (&str, u64)> {
        self.custom_amounts().map(|custom| (&*custom.name, custom.amount))
    }

    /// Returns the amounts of custom dimensions.
    #[inline]
    pub(crate) fn custom_amounts(&self) -> impl Iterator<Item = &CustomAmount> {
        self.custom.iter().flat_map(|all| &**all)
    }

    fn custom_amount(&self, name: &str) -> u64 {
        self.customs().find(|(n, _)| *n == name).map_or(0, |(_, amount)| amount)
    }
}

/// Clips the guessed part of an amount so that the whole is at most `limit`.
fn clip(amount: u64, guessed: u64, limit: u64) -> u64 {
    amount.min(limit).max(amount - guessed)
}

impl PartialEq for CustomAmount {
    /// Compares name and amount.
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.amount) == (&other.name, other.amount)
    }
}

impl PartialEq for Cost {
    /// Compares the amounts without regard to guesses. Every settlement calls it, so built-in dimensions are
    /// compared without branches.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.amounts.iter().zip(&other.amounts);
        pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0 && self.custom == other.custom
    }
}

impl Eq for Cost {}

impl From<&Usage> for Cost {
    /// Returns the tokens of one request.
    fn from(usage: &Usage) -> Self {
        Self::new().tokens(usage.total()).input_tokens(usage.input).output_tokens(usage.output)
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self::new()
    }
}
