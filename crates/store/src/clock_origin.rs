use paceline_limiter::Timestamp;
use paceline_limiter::limiter::Boot;
use paceline_limiter::seam::nanos;

/// The time at which the machine was booted, as shown by a clock. Relates times of two clocks of one
/// machine, even if a clock was set between the two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClockOrigin {
    /// The id of the boot, if known.
    pub(super) boot: Option<String>,
    /// The time of the boot by this clock, in nanoseconds since the Unix epoch.
    pub(super) offset: i64,
}

impl ClockOrigin {
    /// Returns the origin of a clock that shows `now`.
    pub(super) fn new(boot: Option<Boot>, now: Timestamp) -> Self {
        boot.map_or_else(Self::default, |boot| Self {
            boot: Some(format!("{:032x}", boot.id)),
            offset: stored(now).saturating_sub(signed(nanos(boot.uptime))),
        })
    }

    /// Returns the nanoseconds by which this clock is ahead of `other`. Returns 0 if unknown, and for
    /// small differences, which result from reading two clocks in sequence.
    pub(super) fn ahead_of(&self, other: &Self) -> i64 {
        if self.boot.is_none() || self.boot != other.boot {
            return 0;
        }
        let ahead = self.offset.saturating_sub(other.offset);
        if ahead.unsigned_abs() > MAX_JITTER { ahead } else { 0 }
    }

    /// Converts a time from the clock of `other` to this clock. The result is at most `now`, so
    /// that a wrong clock blocks a key for no longer than a window.
    pub(super) fn read(&self, at: Timestamp, other: &Self, now: Timestamp) -> Timestamp {
        shifted(at, self.ahead_of(other)).min(now)
    }

    /// Converts the end of a cool-down, recorded at `recorded_at` by the clock of `other`. The remaining
    /// cool-down is never longer than it was when recorded.
    pub(super) fn read_until(
        &self,
        until: Timestamp,
        recorded_at: Timestamp,
        other: &Self,
        now: Timestamp,
    ) -> Timestamp {
        let longest = now + (until - recorded_at);
        shifted(until, self.ahead_of(other)).min(longest)
    }
}

/// Returns a time as a database stores it: nanoseconds since the Unix epoch, until the year 2262.
pub(super) fn stored(time: Timestamp) -> i64 {
    signed(time.as_nanos())
}

/// Returns an amount as a database stores it, at most `i64::MAX`.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns a time shifted by a number of nanoseconds.
pub(super) fn shifted(time: Timestamp, nanos: i64) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_add_signed(nanos))
}

/// The maximum difference between two unchanged clocks of one machine, in nanoseconds.
const MAX_JITTER: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NOON: Timestamp = Timestamp::from_unix_secs(1_767_225_600);
    const SMALL: Duration = Duration::from_nanos(5);
    const DAY: Duration = Duration::from_secs(86_400);

    fn origin(boot: u128, uptime: Duration, now: Timestamp) -> ClockOrigin {
        ClockOrigin::new(Some(Boot::new(boot, uptime)), now)
    }

    #[test]
    fn unchanged_clock_keeps_times() {
        let then = origin(1, 50 * SECOND, NOON);
        let now = origin(1, 110 * SECOND, NOON + 60 * SECOND + Duration::from_millis(10));
        assert_eq!(now.read(NOON, &then, NOON + 60 * SECOND), NOON);
    }

    #[test]
    fn clock_set_back_moves_times_back() {
        let then = origin(1, 50 * SECOND, NOON);
        // A minute later by uptime, and yet a day earlier.
        let time = NOON + 60 * SECOND - DAY;
        let now = origin(1, 110 * SECOND, time);
        assert_eq!(now.read(NOON, &then, time), NOON - DAY);
    }

    #[test]
    fn clock_set_forward_moves_times_forward() {
        let then = origin(1, 50 * SECOND, NOON);
        let time = NOON + 60 * SECOND + 2 * DAY;
        let now = origin(1, 110 * SECOND, time);
        assert_eq!(now.read(NOON, &then, time), NOON + 2 * DAY, "the day isn't over");
    }

    #[test]
    fn another_boot_keeps_times_and_clamps_future_times() {
        let then = origin(1, 50 * SECOND, NOON);
        let now = origin(2, 10 * SECOND, NOON + DAY);
        assert_eq!(now.read(NOON, &then, NOON + DAY), NOON);
        assert_eq!(now.read(NOON + 9 * DAY, &then, NOON + DAY), NOON + DAY);
    }

    #[test]
    fn unknown_boot_keeps_times_and_clamps_future_times() {
        let none = ClockOrigin::new(None, NOON);
        assert_eq!(none.read(NOON - SMALL, &ClockOrigin::default(), NOON), NOON - SMALL);
        assert_eq!(none.read(NOON + SMALL, &ClockOrigin::default(), NOON), NOON);
        assert_eq!(
            origin(1, Duration::ZERO, NOON).read(NOON + SMALL, &ClockOrigin::default(), NOON),
            NOON
        );
    }

    #[test]
    fn cool_down_is_never_prolonged() {
        let none = ClockOrigin::default();
        let (until, noted) = (NOON + 30 * SECOND, NOON);
        assert_eq!(none.read_until(until, noted, &none, NOON + 10 * SECOND), until);
        assert_eq!(none.read_until(until, noted, &none, NOON - DAY), NOON - DAY + 30 * SECOND);
        let then = origin(1, 50 * SECOND, NOON);
        let back = origin(1, 60 * SECOND, NOON + 10 * SECOND - DAY);
        assert_eq!(back.read_until(until, noted, &then, NOON + 10 * SECOND - DAY), until - DAY);
    }

    #[test]
    fn times_saturate() {
        let (first, last) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        let far = origin(1, Duration::MAX, first);
        let near = origin(1, Duration::ZERO, last);
        assert_eq!(near.read(last, &far, last), last);
        assert_eq!(far.read(first, &near, last), first);
        assert_eq!(near.read_until(last, first, &far, last), last);
    }
}
