use crate::quota::{Cost, Dimension, Usage};

/// What a provider charges one request for its usage, besides the rule that all its requests have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// The least that the total-token limit is charged, whatever the response uses: what the
    /// provider takes, or may take, at admission. 0 where only usage counts.
    pub floor: u64,
    /// How many tokens of the total-token limit one generated token takes in the end: 1, but 5 with
    /// newer Claude models on Bedrock.
    pub burn_down: u64,
}

impl Terms {
    pub(super) const fn at_least(floor: u64) -> Self {
        Self { floor, burn_down: 1 }
    }

    /// What a usage is charged that is [`charge`](super::Profile::charge) by the provider's rule.
    #[must_use]
    pub fn apply(&self, charge: Cost, usage: &Usage) -> Cost {
        let burnt = usage.output.saturating_mul(self.burn_down.saturating_sub(1));
        let tokens = charge.amount(&Dimension::Tokens).saturating_add(burnt);
        charge.tokens(tokens.max(self.floor))
    }
}

impl Default for Terms {
    /// Usage as it is.
    fn default() -> Self {
        Self::at_least(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_token_may_count_several_times_and_the_sum_has_a_floor() {
        let usage = Usage { input: 10, output: 3, ..Usage::default() };
        let charged = |floor, burn_down| {
            let charge = Cost::new().tokens(13);
            Terms { floor, burn_down }.apply(charge, &usage).amount(&Dimension::Tokens)
        };
        assert_eq!(
            [charged(0, 1), charged(0, 5), charged(20, 1), charged(20, 5)],
            [13, 25, 20, 25]
        );
    }
}
