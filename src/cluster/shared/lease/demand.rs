/// How much is taken in a lease time: a moving average, in which the last third of a lease time
/// weighs as much as all before.
#[derive(Debug, Clone, Default)]
pub(super) struct Demand {
    per_lease: u64,
    taken: u64,
    since: u64,
}

impl Demand {
    #[inline]
    pub(super) fn add(&mut self, amount: u64) {
        self.taken = self.taken.saturating_add(amount);
    }

    /// What was taken was given back.
    pub(super) fn sub(&mut self, amount: u64) {
        self.taken = self.taken.saturating_sub(amount);
    }

    /// What a lease time takes, by all that is known now; `lease` is that time in nanoseconds.
    pub(super) fn per_lease(&mut self, lease: u64, now: u64) -> u64 {
        let (lease, memory) = (u128::from(lease), u128::from(lease / 3).max(1));
        let passed = u128::from(now.saturating_sub(self.since));
        let before = u128::from(self.per_lease) * memory;
        let recent = u128::from(self.taken) * lease;
        let both = before.saturating_add(recent) / (memory + passed);
        self.per_lease = u64::try_from(both).unwrap_or(u64::MAX);
        (self.taken, self.since) = (0, now);
        self.per_lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: u64 = 900;

    #[test]
    fn steady_use_is_the_demand_per_lease() {
        let mut demand = Demand::default();
        for now in (0..9_000).step_by(100) {
            demand.add(50);
            demand.per_lease(LEASE, now);
        }
        demand.add(50);
        assert!((440..=450).contains(&demand.per_lease(LEASE, 9_000)));
    }

    #[test]
    fn burst_counts_at_most_threefold_and_decays() {
        let mut demand = Demand::default();
        demand.per_lease(LEASE, 1_000);
        demand.add(10);
        assert_eq!(demand.per_lease(LEASE, 1_000), 30);
        assert_eq!(demand.per_lease(LEASE, 1_000 + 100 * LEASE), 0);
    }

    #[test]
    fn amounts_saturate() {
        let mut demand = Demand::default();
        demand.add(u64::MAX);
        demand.add(u64::MAX);
        assert_eq!(demand.per_lease(u64::MAX, 0), u64::MAX);
    }
}
