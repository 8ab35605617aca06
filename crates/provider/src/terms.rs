use paceline_limiter::quota::{Cost, Dimension, Usage};

/// The terms of one request's charge, in addition to the provider's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// The minimum charge to the total-token limit, in tokens: the charge at admission. 0 if only usage
    /// counts.
    pub floor: u64,
    /// The number of tokens of the total-token limit that one output token finally costs: 1, but 5 with
    /// newer Claude models on Bedrock.
    pub burn_down: u64,
}

impl Terms {
    pub(super) const fn at_least(floor: u64) -> Self {
        Self { floor, burn_down: 1 }
    }

    /// Returns the charge for a usage, given its [`charge`](crate::Profile::charge) by the provider's
    /// rules.
    #[must_use]
    pub fn apply(&self, charge: Cost, usage: &Usage) -> Cost {
        let burnt = usage.output.saturating_mul(self.burn_down.saturating_sub(1));
        let tokens = charge.amount(&Dimension::Tokens).saturating_add(burnt);
        charge.tokens(tokens.max(self.floor))
    }
}

impl Default for Terms {
    /// Returns terms that don't change a charge.
    fn default() -> Self {
        Self::at_least(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apply_multiplies_output_before_the_floor() {
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
