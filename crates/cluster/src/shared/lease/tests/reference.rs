use std::collections::{HashMap, VecDeque};

/// A reference counter of the provider, as simple as possible.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reference {
    Token(u64, u64),
    Sliding(u64, u64),
    Grid(u64, u64),
}

impl Reference {
    pub(super) fn assert_within_limit(&self, uses: impl Iterator<Item = (u64, u64)>) {
        match *self {
            Self::Token(amount, window) => {
                let full = i128::from(amount) * i128::from(window);
                let (mut level, mut last) = (full, 0);
                for (at, used) in uses {
                    level = full.min(level + i128::from(at - last) * i128::from(amount));
                    level -= i128::from(used) * i128::from(window);
                    assert!(level >= 0, "over by {} at {at}", -level / i128::from(window));
                    last = at;
                }
            }
            Self::Sliding(amount, window) => {
                let (mut log, mut sum) = (VecDeque::new(), 0);
                for (at, used) in uses {
                    sum += used;
                    log.push_back((at, used));
                    while log[0].0 + window <= at {
                        sum -= log.pop_front().unwrap().1;
                    }
                    assert!(sum <= amount, "{sum} of {amount} at {at}");
                }
            }
            Self::Grid(amount, window) => {
                let mut sums = HashMap::new();
                for (at, used) in uses {
                    let sum: &mut u64 = sums.entry(at / window).or_default();
                    *sum += used;
                    assert!(*sum <= amount, "{sum} of {amount} at {at}");
                }
            }
        }
    }
}
