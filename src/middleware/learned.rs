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
            average.store(old - old / 8 + new / 8, Ordering::Relaxed);
        }
    }
}
