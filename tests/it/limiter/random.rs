/// A linear congruential generator.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Returns a number below the bound.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }

    /// Returns some of the items, at least one, in any order.
    pub(super) fn some_of<T: Copy>(&mut self, items: &[T]) -> Vec<T> {
        let mut left = items.to_vec();
        let count = 1 + self.below(items.len() as u64);
        (0..count).map(|_| left.remove(self.below(left.len() as u64) as usize)).collect()
    }
}
