use core::time::Duration;

use crate::timestamp::Timestamp;

/// Monotonic time from readings of a wall clock.
///
/// Threads read the clock before they take a lock, so readings arrive slightly out of order; an earlier
/// reading counts as the latest one. A reading that is more than a second earlier means that the clock was
/// set back. Time then follows the clock, and the buckets must be moved back with it
/// ([`Bucket::rebase`](super::Bucket::rebase)), so that a wrong clock neither blocks a key nor grants
/// additional quota.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeline {
    last: Timestamp,
}

impl Timeline {
    /// Returns `true` if a reading of `now` means that the clock was set back.
    #[inline]
    pub fn is_far_ahead(&self, now: Timestamp) -> bool {
        self.last.nanos_since(now) > MAX_DISORDER
    }

    /// Returns the latest time.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.last
    }

    /// Returns the time to use for a reading of `now`, and the duration by which all buckets must be moved
    /// back first: zero unless the clock was set back.
    #[inline]
    pub fn advance(&mut self, now: Timestamp) -> (Timestamp, Duration) {
        if now >= self.last {
            self.last = now;
            return (now, Duration::ZERO);
        }
        let back = self.last - now;
        if !self.is_far_ahead(now) {
            return (self.last, Duration::ZERO);
        }
        self.last = now;
        (now, back)
    }
}

const MAX_DISORDER: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advance_distinguishes_late_reading_from_clock_set_back() {
        let at = |millis| Timestamp::UNIX_EPOCH + Duration::from_millis(millis);
        let mut time = Timeline::default();
        assert!(!time.is_far_ahead(at(0)));
        assert_eq!(time.advance(at(10_000)), (at(10_000), Duration::ZERO));
        assert_eq!(time.advance(at(9_500)), (at(10_000), Duration::ZERO));
        assert!(!time.is_far_ahead(at(9_000)) && time.is_far_ahead(at(8_999)));
        assert_eq!(time.advance(at(4_000)), (at(4_000), Duration::from_secs(6)));
        assert_eq!(time.advance(at(4_001)), (at(4_001), Duration::ZERO));
    }
}
