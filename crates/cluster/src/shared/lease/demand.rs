use std::time::Duration;

use paceline_limiter::Timestamp;

/// The demand per lease duration: a moving average in which the last third of a lease duration
/// weighs as much as everything before it.
#[derive(Debug, Clone, Default)]
pub(super) struct Demand {
    per_lease: u64,
    taken: u64,
    since: Timestamp,
}

impl Demand {
    #[inline]
    pub(super) fn add(&mut self, amount: u64) {
        self.taken = self.taken.saturating_add(amount);
    }

    /// Undoes an addition.
    pub(super) fn sub(&mut self, amount: u64) {
        self.taken = self.taken.saturating_sub(amount);
    }

    /// Updates the moving average at time `now`, and returns the demand per lease duration.
    pub(super) fn per_lease(&mut self, lease: Duration, now: Timestamp) -> u64 {
        let (memory, lease) = ((lease / 3).as_nanos().max(1), lease.as_nanos());
        let passed = (now - self.since).as_nanos();
        let before = u128::from(self.per_lease) * memory;
        let recent = u128::from(self.taken) * lease;
        let average = before.saturating_add(recent) / (memory + passed);
        self.per_lease = u64::try_from(average).unwrap_or(u64::MAX);
        (self.taken, self.since) = (0, now);
        self.per_lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_nanos(900);

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn steady_usage_is_the_demand_per_lease() {
        let mut demand = Demand::default();
        for now in (0..9_000).step_by(100) {
            demand.add(50);
            demand.per_lease(LEASE, at(now));
        }
        demand.add(50);
        assert!((440..=450).contains(&demand.per_lease(LEASE, at(9_000))));
    }

    #[test]
    fn burst_counts_at_most_threefold_and_decays() {
        let mut demand = Demand::default();
        demand.per_lease(LEASE, at(1_000));
        demand.add(10);
        assert_eq!(demand.per_lease(LEASE, at(1_000)), 30);
        assert_eq!(demand.per_lease(LEASE, at(1_000) + 100 * LEASE), 0);
    }

    #[test]
    fn amounts_saturate() {
        let mut demand = Demand::default();
        demand.add(u64::MAX);
        demand.add(u64::MAX);
        assert_eq!(demand.per_lease(Duration::from_nanos(u64::MAX), at(0)), u64::MAX);
    }
}
