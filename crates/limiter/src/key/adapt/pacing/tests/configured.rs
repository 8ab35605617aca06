use super::super::ConfiguredRate;
use crate::quota::{Cost, Dimension};

/// A configured limit, as the key's bucket enforces it.
pub(super) struct ConfiguredBucket {
    pub(super) dimension: Dimension,
    rate: f64,
    capacity: f64,
    level: f64,
    at: f64,
}

impl ConfiguredBucket {
    pub(super) fn new(rate: ConfiguredRate) -> Self {
        let margin = (0.02 * rate.burst).max(0.5 * rate.per_second);
        let capacity = rate.burst - margin;
        Self {
            dimension: rate.dimension,
            rate: rate.per_second,
            capacity,
            level: capacity,
            at: 0.0,
        }
    }

    pub(super) fn wait(&mut self, at: f64, cost: &Cost) -> f64 {
        self.level = self.capacity.min(self.level + (at - self.at) * self.rate);
        self.at = at;
        let cost = cost.amount(&self.dimension) as f64;
        let short = cost.min(self.capacity) - self.level;
        if short > 1e-9 { short / self.rate + 1e-6 } else { 0.0 }
    }

    pub(super) fn take(&mut self, at: f64, cost: &Cost) {
        self.wait(at, cost);
        self.level -= cost.amount(&self.dimension) as f64;
    }
}
