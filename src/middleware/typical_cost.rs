use std::sync::atomic::{AtomicU64, Ordering};

use crate::quota::{Cost, Dimension};
use paceline_limiter::seam::USD;

/// The typical cost of a layer's requests: a moving average over the latest ones.
#[derive(Debug, Default)]
pub(super) struct TypicalCost {
    tokens: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
    /// Micro-dollars; 0 if none were reserved yet.
    usd: AtomicU64,
}

impl TypicalCost {
    pub(super) fn get(&self) -> Cost {
        let read = |average: &AtomicU64| average.load(Ordering::Relaxed);
        let cost = Cost::new()
            .tokens(read(&self.tokens))
            .input_tokens(read(&self.input_tokens))
            .output_tokens(read(&self.output_tokens));
        match read(&self.usd) {
            0 => cost,
            usd => cost.custom(USD, usd),
        }
    }

    /// Adds the cost of a request. Of two concurrent updates one may be lost, which an average tolerates.
    pub(super) fn update(&self, cost: &Cost) {
        let move_to = |average: &AtomicU64, new| {
            average.store(mean(average.load(Ordering::Relaxed), new), Ordering::Relaxed);
        };
        move_to(&self.tokens, cost.amount(&Dimension::Tokens));
        move_to(&self.input_tokens, cost.amount(&Dimension::InputTokens));
        move_to(&self.output_tokens, cost.amount(&Dimension::OutputTokens));
        let mut customs = cost.customs();
        if let Some((_, usd)) = customs.find(|(name, _)| *name == USD) {
            move_to(&self.usd, usd);
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
