use std::time::Duration;

/// How long requests waited for the limits: percentiles in 15 KB, however many there are.
///
/// A duration is counted in one of 32 steps per doubling: what comes out is at most 1/32 more than
/// what went in, and never less.
#[derive(Clone)]
pub struct Waits {
    counts: Vec<u64>,
    total: u64,
    longest: u64,
}

impl Waits {
    /// No waits yet.
    pub fn new() -> Self {
        Self { counts: vec![0; SLOTS], total: 0, longest: 0 }
    }

    /// Counts one wait. Longer than 584 years counts as that.
    pub fn record(&mut self, wait: Duration) {
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.counts[slot(nanos)] += 1;
        self.total += 1;
        self.longest = self.longest.max(nanos);
    }

    /// Counts what another has counted.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
    }

    /// How many waits were counted.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether none was counted.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The wait that `percent` (0 to 100) of all waits do not exceed, rounded up by at most 1/32;
    /// zero where there are none.
    pub fn percentile(&self, percent: u8) -> Duration {
        let share = u128::from(self.total) * u128::from(percent.min(100));
        let rank = share.div_ceil(100).max(1);
        let mut below = 0;
        for (slot, count) in self.counts.iter().enumerate() {
            below += u128::from(*count);
            if below >= rank {
                return Duration::from_nanos(last_of(slot).min(self.longest));
            }
        }
        Duration::ZERO
    }
}

impl Default for Waits {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waits")
            .field("len", &self.total)
            .field("p50", &self.percentile(50))
            .field("p99", &self.percentile(99))
            .finish_non_exhaustive()
    }
}

/// Below 64 every value has a slot of its own; above, each doubling has 32.
fn slot(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(STEP_BITS + 1);
    (shift as usize * STEPS) + (nanos >> shift) as usize
}

/// The greatest value of a slot.
fn last_of(slot: usize) -> u64 {
    let shift = (slot / STEPS).saturating_sub(1);
    let step = (slot - shift * STEPS) as u128;
    u64::try_from(((step + 1) << shift) - 1).unwrap_or(u64::MAX)
}

const STEP_BITS: u32 = 5;
const STEPS: usize = 1 << STEP_BITS;
const SLOTS: usize = (u64::BITS - STEP_BITS + 1) as usize * STEPS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_ends_where_the_next_begins() {
        for at in 0..SLOTS - 1 {
            let last = last_of(at);
            assert_eq!((slot(last), slot(last + 1)), (at, at + 1));
        }
        assert_eq!((slot(u64::MAX), last_of(SLOTS - 1)), (SLOTS - 1, u64::MAX));
    }
}
