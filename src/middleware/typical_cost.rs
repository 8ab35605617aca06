use std::sync::atomic::{AtomicU64, Ordering};

use crate::quota::{Cost, Dimension};

/// The typical cost of a layer's requests: a moving average over the latest ones.
#[derive(Debug, Default)]
pub(super) struct TypicalCost {
    tokens: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
}

impl TypicalCost {
    pub(super) fn get(&self) -> Cost {
        let read = |average: &AtomicU64| average.load(Ordering::Relaxed);
        Cost::new()
            .tokens(read(&self.tokens))
            .input_tokens(read(&self.input_tokens))
            .output_tokens(read(&self.output_tokens))
    }

    /// Adds the cost of a request. Of two concurrent updates one may be lost, which an average tolerates.
    pub(super) fn update(&self, cost: &Cost) {
        let averages = [
            (&self.tokens, Dimension::Tokens),
            (&self.input_tokens, Dimension::InputTokens),
            (&self.output_tokens, Dimension::OutputTokens),
        ];
        for (average, dimension) in averages {
            let (old, new) = (average.load(Ordering::Relaxed), cost.amount(&dimension));
            average.store(mean(old, new), Ordering::Relaxed);
        }
    }
}

/// Moves `old` by an eighth of its distance to `new`, rounded up. Returns `new` if `old` is zero.
fn mean(old: u64, new: u64) -> u64 {
    match old {
        0 => new,
        _ if new > old => old + (new - old).div_ceil(8),
        _ => old - (old - new).div_ceil(8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_cost_starts_at_first_cost_and_converges() {
        let typical_cost = TypicalCost::default();
        let update = |amount| {
            typical_cost.update(&Cost::new().tokens(amount));
            typical_cost.get().amount(&Dimension::Tokens)
        };
        assert_eq!(update(5), 5);
        assert_eq!((0..40).fold(0, |_, _| update(100)), 100);
        assert_eq!((0..40).fold(0, |_, _| update(3)), 3);
        assert!(update(u64::MAX) > u64::MAX / 9);
    }
}
