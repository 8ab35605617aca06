use std::time::Duration;

use hdrhistogram::Histogram;

/// A histogram of durations with microsecond resolution, exact to two significant digits.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    /// Records a duration.
    pub(crate) fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).min(LONGEST);
        self.0.record(micros).expect("the histogram resizes up to the longest value");
    }

    /// Adds the durations of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("the histogram resizes up to the longest value");
    }

    /// Returns the number of durations.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// Returns a quantile (0 to 1) of the durations, rounded up; zero if there are none.
    pub(crate) fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(quantile))
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new(2).expect("2 significant digits are supported"))
    }
}

/// The longest duration in microseconds: the largest value of a histogram that resizes.
const LONGEST: u64 = i64::MAX as u64 / 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_rounded_up_by_at_most_one_percent() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.99), Duration::ZERO);
        let mut other = Latencies::default();
        (1..=50_000).for_each(|micros| latencies.record(Duration::from_micros(micros)));
        (50_001..=100_000).for_each(|micros| other.record(Duration::from_micros(micros)));
        latencies.merge(&other);
        assert_eq!(latencies.len(), 100_000);
        for (quantile, exact) in [(0.5, 50_000), (0.99, 99_000), (1.0, 100_000)] {
            let micros = latencies.quantile(quantile).as_micros();
            assert!((exact..=exact + exact / 100).contains(&micros), "{quantile}: {micros}");
        }
    }

    #[test]
    fn longest_duration_is_recorded() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::MAX);
        assert!(latencies.quantile(1.0) > Duration::from_secs(1_000_000_000));
    }
}
