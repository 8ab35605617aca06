use super::Dimension;

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
    custom: Option<Box<[Custom]>>,
}

type Custom = (Box<str>, u64);

/// The dimensions that are always there.
const COLUMNS: usize = 5;

impl Cost {
    /// One request and nothing else.
    pub const fn new() -> Self {
        Self { amounts: [1, 0, 0, 0, 1], custom: None }
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
        self.amounts[1] = amount;
        self
    }

    /// Sets the input tokens.
    #[must_use]
    pub fn input_tokens(mut self, amount: u64) -> Self {
        self.amounts[2] = amount;
        self
    }

    /// Sets the output tokens.
    #[must_use]
    pub fn output_tokens(mut self, amount: u64) -> Self {
        self.amounts[3] = amount;
        self
    }

    /// Sets the amount of a custom dimension.
    #[must_use]
    pub fn custom(mut self, name: &str, amount: u64) -> Self {
        let mut all = self.custom.take().map_or_else(Vec::new, Vec::from);
        match all.iter_mut().find(|(n, _)| **n == *name) {
            Some((_, old)) => *old = amount,
            None => all.push((name.into(), amount)),
        }
        self.custom = Some(all.into());
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

    /// Sets the amount in one dimension.
    pub(crate) fn set(&mut self, dimension: &Dimension, amount: u64) {
        match dimension {
            Dimension::Custom(name) => *self = core::mem::take(self).custom(name, amount),
            _ => self.amounts[dimension.column()] = amount,
        }
    }

    /// The amount in the dimension of this column; `None` for a custom one.
    #[inline]
    pub(crate) fn column(&self, column: usize) -> Option<u64> {
        self.amounts.get(column).copied()
    }

    /// The custom dimensions and their amounts.
    pub fn customs(&self) -> impl Iterator<Item = (&str, u64)> {
        self.custom.iter().flatten().map(|(name, amount)| (&**name, *amount))
    }

    fn custom_amount(&self, name: &str) -> u64 {
        self.customs().find(|(n, _)| *n == name).map_or(0, |(_, amount)| amount)
    }
}

impl PartialEq for Cost {
    /// Without a call or a branch for what every settling compares.
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
