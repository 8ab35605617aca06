use std::sync::atomic::{AtomicU64, Ordering};

use crate::quota::{Cost, Dimension};

/// What a request of a layer typically costs: a moving average over its last few.
#[derive(Debug, Default)]
pub(super) struct Learned {
    tokens: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
}

impl Learned {
    pub(super) fn typical(&self) -> Cost {
        let read = |average: &AtomicU64| average.load(Ordering::Relaxed);
        Cost::new()
            .tokens(read(&self.tokens))
            .input_tokens(read(&self.input_tokens))
            .output_tokens(read(&self.output_tokens))
    }

    /// Two requests at once may lose one's part in the average: it is only an average.
    pub(super) fn learn(&self, cost: &Cost) {
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

/// An eighth of the way from `old` to `new`, rounded up; the first one counts in full.
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
    fn the_first_counts_in_full_and_later_ones_move_the_average_all_the_way() {
        let learned = Learned::default();
        let learn = |amount| {
            learned.learn(&Cost::new().tokens(amount));
            learned.typical().amount(&Dimension::Tokens)
        };
        assert_eq!(learn(5), 5);
        assert_eq!((0..40).fold(0, |_, _| learn(100)), 100);
        assert_eq!((0..40).fold(0, |_, _| learn(3)), 3);
        assert!(learn(u64::MAX) > u64::MAX / 9);
    }
}
