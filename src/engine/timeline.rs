use core::time::Duration;

use crate::timestamp::Timestamp;

/// Time that doesn't run back.
///
/// Threads read the clock before they take a lock, so readings arrive a little out of order: those
/// count as the latest one. A clock that was set back by more than a second is believed instead,
/// and the buckets are to be moved back with it ([`Bucket::rebase`](super::Bucket::rebase)), so
/// that a wrong clock neither locks a key nor gives quota away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeline {
    last: Timestamp,
}

impl Timeline {
    /// Whether a reading of `now` would be taken for that of a clock that was set back.
    #[inline]
    pub fn is_far_ahead(&self, now: Timestamp) -> bool {
        self.last.nanos_since(now) > OUT_OF_ORDER
    }

    /// The time that was used last.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.last
    }

    /// Returns the time to use for a reading of `now`, and by how much all buckets are to be moved
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

const OUT_OF_ORDER: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_steps_back_are_out_of_order_readings_and_large_ones_a_clock_set_back() {
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
