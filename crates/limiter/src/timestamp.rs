use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since the Unix epoch.
///
/// Covers the years 1970 to 2554. All arithmetic saturates: a result before the epoch is
/// [`UNIX_EPOCH`](Self::UNIX_EPOCH), one after the year 2554 is [`MAX`](Self::MAX). Displayed in RFC
/// 3339, serialized as its number of nanoseconds.
///
/// ```
/// use std::time::Duration;
/// use paceline_limiter::Timestamp;
///
/// let start = Timestamp::from_unix_secs(1_767_225_600);
/// let end = start + Duration::from_millis(1_500);
/// assert_eq!(end - start, Duration::from_millis(1_500));
/// assert_eq!(end.to_string(), "2026-01-01T00:00:01.5Z");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z, the earliest timestamp.
    pub const UNIX_EPOCH: Self = Self(0);

    /// The latest timestamp, in the year 2554.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a timestamp from nanoseconds since the Unix epoch.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a timestamp from whole seconds since the Unix epoch.
    #[inline]
    pub const fn from_unix_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(NANOS_PER_SECOND))
    }

    /// Returns the nanoseconds since the Unix epoch.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time `duration` later, at most [`MAX`](Self::MAX).
    #[inline]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        self.add_nanos(nanos(duration))
    }

    /// Returns the time `duration` earlier, at least [`UNIX_EPOCH`](Self::UNIX_EPOCH).
    #[inline]
    pub const fn saturating_sub(self, duration: Duration) -> Self {
        self.sub_nanos(nanos(duration))
    }

    /// Returns the time `duration` later, or `None` if that is after [`MAX`](Self::MAX).
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        self.0.checked_add(nanos).map(Self)
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is the later one.
    #[inline]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// Returns the time between the two timestamps, whichever is later.
    #[inline]
    pub const fn abs_diff(self, other: Self) -> Duration {
        Duration::from_nanos(self.0.abs_diff(other.0))
    }

    /// The same as [`saturating_add`](Self::saturating_add), for hot paths.
    #[inline]
    pub(crate) const fn add_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// The same as [`saturating_sub`](Self::saturating_sub), for hot paths.
    #[inline]
    pub(crate) const fn sub_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_sub(nanos))
    }

    /// The same as [`saturating_duration_since`](Self::saturating_duration_since), for hot paths.
    #[inline]
    pub(crate) const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Saturates at [`Timestamp::MAX`].
impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.saturating_add(duration)
    }
}

impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Saturates at [`Timestamp::UNIX_EPOCH`].
impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        self.saturating_sub(duration)
    }
}

impl SubAssign<Duration> for Timestamp {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// Returns the time from the right timestamp to the left one, zero if the right one is later.
impl Sub for Timestamp {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

/// A time before the epoch becomes [`Timestamp::UNIX_EPOCH`], one after the year 2554
/// [`Timestamp::MAX`].
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::UNIX_EPOCH + since_epoch
    }
}

impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        Self::UNIX_EPOCH + Duration::from_nanos(time.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(self.0.into()) {
            Ok(time) => fmt::Display::fmt(&time, f),
            Err(_) => write!(f, "{} ns", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the nanoseconds of a duration, at most `u64::MAX` (584 years).
pub const fn nanos(duration: Duration) -> u64 {
    let whole = duration.as_secs().saturating_mul(NANOS_PER_SECOND);
    whole.saturating_add(duration.subsec_nanos() as u64)
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_beyond_the_range_saturates() {
        let second = Duration::from_secs(1);
        assert_eq!(Timestamp::UNIX_EPOCH - second, Timestamp::UNIX_EPOCH);
        assert_eq!(Timestamp::MAX + second, Timestamp::MAX);
        assert_eq!(Timestamp::UNIX_EPOCH + Duration::MAX, Timestamp::MAX);
        assert_eq!(Timestamp::MAX.checked_add(second), None);
        assert_eq!(Timestamp::UNIX_EPOCH - Timestamp::MAX, Duration::ZERO);
        assert_eq!(Timestamp::from_unix_secs(u64::MAX), Timestamp::MAX);
    }

    #[test]
    fn system_time_round_trip_keeps_nanoseconds() {
        let time = Timestamp::from_nanos(1_767_225_600_123_456_789);
        assert_eq!(Timestamp::from(SystemTime::from(time)), time);
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(Timestamp::from(before), Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn text_is_rfc_3339_and_serialized_form_a_number() {
        let time = Timestamp::from_nanos(1_767_225_600_000_000_001);
        assert_eq!(time.to_string(), "2026-01-01T00:00:00.000000001Z");
        assert_eq!(format!("{:?}", Timestamp::UNIX_EPOCH), "1970-01-01T00:00:00Z");
        assert_eq!(Timestamp::MAX.to_string(), "2554-07-21T23:34:33.709551615Z");
        assert_eq!(serde_json::to_string(&time).unwrap(), "1767225600000000001");
        assert_eq!(serde_json::from_str::<Timestamp>("7").unwrap(), Timestamp::from_nanos(7));
    }
}
