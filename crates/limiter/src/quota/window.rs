use core::fmt;
use core::time::Duration;

/// The period of a limit, from one millisecond to 366 days, or without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct Window(u64);

impl Window {
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);
    /// Sixty seconds.
    pub const MINUTE: Self = Self(60 * Self::SECOND.0);
    /// Sixty minutes.
    pub const HOUR: Self = Self(60 * Self::MINUTE.0);
    /// Twenty-four hours.
    pub const DAY: Self = Self(24 * Self::HOUR.0);
    /// Seven days.
    pub const WEEK: Self = Self(7 * Self::DAY.0);
    /// Thirty days: the nominal length of a month.
    pub const MONTH: Self = Self(30 * Self::DAY.0);

    /// A window without an end: that of a limit that never resets.
    pub const ENDLESS: Self = Self(u64::MAX);

    /// Creates a window of this length.
    ///
    /// # Errors
    /// Returns [`InvalidWindow`] if it is shorter than a millisecond or longer than 366 days.
    pub fn new(length: Duration) -> Result<Self, InvalidWindow> {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        if (MIN_NANOS..=MAX_NANOS).contains(&nanos) {
            Ok(Self(nanos))
        } else {
            Err(InvalidWindow { length })
        }
    }

    /// Returns `true` for [`ENDLESS`](Self::ENDLESS).
    pub const fn is_endless(self) -> bool {
        self.0 == Self::ENDLESS.0
    }

    /// Returns the length in nanoseconds; `u64::MAX` for a window without an end.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the length as a [`Duration`], which is that of `u64::MAX` nanoseconds for a window without an end.
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

/// A window that is shorter than a millisecond or longer than 366 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidWindow {
    /// The length that was given.
    pub length: Duration,
}

impl fmt::Display for InvalidWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "window: {:?} is out of range; give 1ms to 366 days", self.length)
    }
}

impl core::error::Error for InvalidWindow {}

const MIN_NANOS: u64 = 1_000_000;
const MAX_NANOS: u64 = 366 * Window::DAY.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_from_1_ms_to_366_days() {
        assert!(Window::new(Duration::from_millis(1)).is_ok());
        assert!(Window::new(Duration::from_micros(999)).is_err());
        assert!(Window::new(Duration::from_secs(366 * 86_400)).is_ok());
        let too_long = Window::new(Duration::MAX).unwrap_err();
        assert!(too_long.to_string().contains("1ms to 366 days"));
    }
}
