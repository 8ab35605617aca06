use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The durations of calls, counted by range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latency {
    /// The number of calls in each range, and the sum of their durations in nanoseconds.
    ranges: [(u64, u64); RANGES],
}

impl Latency {
    /// The upper bounds of the ranges, inclusive. The last range, above them, has no bound.
    pub const BOUNDS: [Duration; RANGES - 1] = [
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_micros(2_500),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_millis(500),
        Duration::from_secs(1),
    ];

    /// Returns the number of calls.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(count, _)| count).sum()
    }

    /// Returns the sum of the durations of all calls.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.ranges.iter().map(|(_, nanos)| nanos).sum())
    }

    /// Returns the smallest of the [bounds](Self::BOUNDS) that this part of the calls doesn't exceed;
    /// `None` if there are no calls or the part exceeds all bounds. `part` is from 0 to 1.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let rank = (self.count() as f64 * part).ceil().max(1.0);
        let mut below = 0;
        let mut bounds = self.ranges.iter().zip(Self::BOUNDS);
        bounds.find_map(|((count, _), bound)| {
            below += count;
            (below as f64 >= rank).then_some(bound)
        })
    }

    /// Returns the calls of both.
    pub(crate) fn with(mut self, other: &Self) -> Self {
        for ((count, nanos), (more, more_nanos)) in self.ranges.iter_mut().zip(&other.ranges) {
            (*count, *nanos) = (count.saturating_add(*more), nanos.saturating_add(*more_nanos));
        }
        self
    }

    /// Returns the number and the mean duration, in seconds, of the calls in each range since an earlier
    /// state. Ranges without calls are left out.
    pub(crate) fn means_since(&self, earlier: &Self) -> impl Iterator<Item = (u64, f64)> {
        let ranges = self.ranges.into_iter().zip(earlier.ranges);
        let difference = |((count, nanos), (before, nanos_before)): ((u64, u64), (u64, u64))| {
            (count.saturating_sub(before), nanos.saturating_sub(nanos_before))
        };
        let calls = ranges.map(difference).filter(|(count, _)| *count > 0);
        calls.map(|(count, nanos)| (count, nanos as f64 / count as f64 / 1e9))
    }
}

/// A recorder of call durations.
#[derive(Debug, Default)]
pub struct LatencyRecorder([(AtomicU64, AtomicU64); RANGES]);

impl LatencyRecorder {
    /// Counts a call.
    pub fn record(&self, duration: Duration) {
        let range = Latency::BOUNDS.partition_point(|bound| *bound < duration);
        let (count, nanos) = &self.0[range];
        count.fetch_add(1, Ordering::Relaxed);
        let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        nanos.fetch_add(duration, Ordering::Relaxed);
    }

    /// Returns the durations so far.
    pub fn get(&self) -> Latency {
        let read = |(count, nanos): &(AtomicU64, AtomicU64)| {
            (count.load(Ordering::Relaxed), nanos.load(Ordering::Relaxed))
        };
        Latency { ranges: self.0.each_ref().map(read) }
    }
}

const RANGES: usize = 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_in_their_ranges() {
        let recorder = LatencyRecorder::default();
        for micros in [40, 60, 100, 101, 1_000, 3_000_000] {
            recorder.record(Duration::from_micros(micros));
        }
        let latency = recorder.get();
        assert_eq!((latency.count(), latency.total()), (6, Duration::from_micros(3_001_301)));
        let means: Vec<_> = latency.means_since(&Latency::default()).collect();
        let expected = [(3, 200e-6 / 3.0), (1, 101e-6), (1, 1e-3), (1, 3.0)];
        for ((count, mean), (count_expected, mean_expected)) in means.iter().zip(expected) {
            assert_eq!(*count, count_expected);
            assert!((mean - mean_expected).abs() < 1e-9, "{means:?}");
        }
        let quantile = |part| latency.quantile(part);
        assert_eq!(quantile(0.5), Some(Duration::from_micros(100)));
        assert_eq!(quantile(0.75), Some(Duration::from_millis(1)));
        assert_eq!((quantile(1.0), Latency::default().quantile(0.5)), (None, None));
        assert_eq!(latency.means_since(&latency).count(), 0);
    }
}
