//! A limit on spending.

use super::usage::SimulatedUsage;

/// A limit on what the requests of a model cost in any ten minutes, as Gemini has for a project.
/// Tokens read from a cache cost as much as others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendLimit {
    /// Micro-dollars per ten minutes; 0 is unlimited.
    pub limit: u64,
    /// Micro-dollars per million input tokens.
    pub input_price: u64,
    /// Micro-dollars per million output tokens.
    pub output_price: u64,
}

impl SpendLimit {
    /// Returns the cost of a request in micro-dollars, rounded up.
    pub(super) fn cost(&self, usage: &SimulatedUsage) -> u64 {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let cost = part(usage.input, self.input_price)
            .saturating_add(part(usage.output, self.output_price))
            .div_ceil(1_000_000);
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}
