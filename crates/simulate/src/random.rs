//! Sizes and times drawn from a seed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How many output tokens an answer has that its request does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputSize {
    /// Always so many.
    Fixed(u64),
    /// Any number from the first to the second, all as likely.
    Uniform(u64, u64),
    /// Any number from the first to the second, small ones as likely as large ones: as many
    /// from 10 to 100 as from 100 to 1,000.
    LogUniform(u64, u64),
}

impl Default for OutputSize {
    fn default() -> Self {
        Self::Uniform(20, 400)
    }
}

/// The draws of one request.
///
/// They depend on the seed and the body alone: a job makes the same work whatever the order
/// and however often a request is sent again, and a large answer is not shrunk by retrying it.
#[derive(Debug)]
pub(super) struct RequestRng(StdRng);

impl RequestRng {
    pub(super) fn new(seed: u64, body: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (seed, body).hash(&mut hasher);
        Self(StdRng::seed_from_u64(hasher.finish()))
    }

    /// Tokens of one answer.
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

    /// A time between two others.
    pub(super) fn latency(&mut self, (shortest, longest): (Duration, Duration)) -> Duration {
        self.0.random_range(shortest..=longest.max(shortest))
    }
}

/// 32 hexadecimal digits, others for each `nth` request.
pub(super) fn id(seed: u64, nth: u64) -> String {
    let mut hasher = DefaultHasher::new();
    (seed, nth).hash(&mut hasher);
    format!("{:016x}{nth:016x}", hasher.finish())
}
