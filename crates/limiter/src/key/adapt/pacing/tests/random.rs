/// A generator of repeatable numbers: xorshift64*.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns a number of at least 0 and below 1.
    pub(super) fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.part()
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() >> 33) as usize % of.len()]
    }

    /// Returns a number whose logarithm is normally distributed.
    pub(super) fn log_normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.part()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.part()).cos();
        (mean + deviation * normal).exp()
    }
}
