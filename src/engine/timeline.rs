/// Time that doesn't run back.
///
/// Threads read the clock before they take a lock, so readings arrive a little out of order: those
/// count as the latest one. A clock that was set back by more than a second is believed instead,
/// and the buckets are to be moved back with it ([`Bucket::rebase`](super::Bucket::rebase)), so
/// that a wrong clock neither locks a key nor gives quota away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeline {
    last: u64,
}

impl Timeline {
    /// Whether a reading of `now` would be taken for that of a clock that was set back.
    #[inline]
    pub fn is_far_ahead(&self, now: u64) -> bool {
        self.last.saturating_sub(now) > OUT_OF_ORDER
    }

    /// The time that was used last.
    #[inline]
    pub fn now(&self) -> u64 {
        self.last
    }

    /// The time to use for a reading of `now`, and by how many nanoseconds all buckets are to be
    /// moved back first (0 in all but the rarest case).
    #[inline]
    pub fn advance(&mut self, now: u64) -> (u64, u64) {
        if now >= self.last {
            self.last = now;
            return (now, 0);
        }
        let back = self.last - now;
        if !self.is_far_ahead(now) {
            return (self.last, 0);
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
        let mut time = Timeline::default();
        assert!(!time.is_far_ahead(0));
        assert_eq!(time.advance(10_000_000_000), (10_000_000_000, 0));
        assert_eq!(time.advance(9_500_000_000), (10_000_000_000, 0));
        assert!(!time.is_far_ahead(9_000_000_000) && time.is_far_ahead(8_999_999_999));
        assert_eq!(time.advance(4_000_000_000), (4_000_000_000, 6_000_000_000));
        assert_eq!(time.advance(4_000_000_001), (4_000_000_001, 0));
    }
}
