//! Random sizes, latencies and ids, derived from a seed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The distribution of output tokens of requests that do not set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputSize {
    /// A fixed number.
    Fixed(u64),
    /// A uniform distribution over an inclusive range.
    Uniform(u64, u64),
    /// A log-uniform distribution over an inclusive range: 10 to 100 is as likely as 100 to 1,000.
    LogUniform(u64, u64),
}

impl Default for OutputSize {
    fn default() -> Self {
        Self::Uniform(20, 400)
    }
}

/// The random numbers of one request.
///
/// They depend only on the seed and the body: the result is independent of the order of requests,
/// and a retry gets the same response.
#[derive(Debug)]
pub(super) struct RequestRng(StdRng);

impl RequestRng {
    pub(super) fn new(seed: u64, body: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (seed, body).hash(&mut hasher);
        Self(StdRng::seed_from_u64(hasher.finish()))
    }

    /// Returns the output tokens of a response.
    pub(super) fn output(&mut self, size: OutputSize) -> u64 {
        match size {
            OutputSize::Fixed(tokens) => tokens,
            OutputSize::Uniform(from, to) => self.0.random_range(from..=to.max(from)),
            OutputSize::LogUniform(from, to) => {
                let (low, high) = (from.max(1) as f64, to.max(from).max(1) as f64);
                let drawn = low * (high / low).powf(self.0.random::<f64>());
                (drawn.round() as u64).clamp(from, to.max(from))
            }
        }
    }

    /// Returns a random latency from the shortest to the longest.
    pub(super) fn latency(&mut self, (shortest, longest): (Duration, Duration)) -> Duration {
        self.0.random_range(shortest..=longest.max(shortest))
    }
}

/// Returns a number from 0 to below 1, which depends on the seed and a value.
pub(super) fn chance(seed: u64, of: impl Hash) -> f64 {
    let mut hasher = DefaultHasher::new();
    (seed, of).hash(&mut hasher);
    StdRng::seed_from_u64(hasher.finish()).random()
}

/// Returns an id of 32 hexadecimal digits, different for each request.
pub(super) fn id(seed: u64, nth: u64) -> String {
    let mut hasher = DefaultHasher::new();
    (seed, nth).hash(&mut hasher);
    format!("{:016x}{nth:016x}", hasher.finish())
}
