use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Capacity that a limiter leaves unused because requests reach the server later than they were
/// admitted, and out of order.
///
/// A margin has two parts: a percentage of a token bucket's burst, and a lag, which is the longest expected
/// delay between admission and arrival. A token bucket leaves the percentage or the refill of one lag
/// unused, whichever is larger. A window is longer by the lag, and a fixed window also closes one lag
/// before its end. The default is 2 % and 500 ms.
///
/// A limiter that protects its own server needs no margin: [`Margin::NONE`].
///
/// ```
/// use std::time::Duration;
/// use paceline_limiter::quota::Margin;
/// let same_network = Margin::new(0, Duration::from_millis(50))?;
/// assert_eq!(same_network.lag(), Duration::from_millis(50));
/// assert!(Margin::new(100, Duration::ZERO).is_err());
/// # Ok::<(), paceline_limiter::quota::InvalidMargin>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "SavedMargin", try_from = "SavedMargin")]
pub struct Margin {
    percent: u8,
    lag_nanos: u64,
}

impl Margin {
    /// No margin, for a limiter whose own decision is final.
    pub const NONE: Self = Self { percent: 0, lag_nanos: 0 };

    /// Creates a margin of a percentage of a token bucket's burst, and a lag.
    ///
    /// A lag above 2^64 - 1 nanoseconds counts as that.
    ///
    /// # Errors
    /// Returns [`InvalidMargin`] for 100 % and more, which would leave nothing to use.
    pub fn new(percent: u8, lag: Duration) -> Result<Self, InvalidMargin> {
        if percent >= 100 {
            return Err(InvalidMargin { percent });
        }
        Ok(Self { percent, lag_nanos: u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX) })
    }

    /// Returns the minimum part of a token bucket's burst that is left unused, in percent, below 100.
    pub const fn percent(self) -> u8 {
        self.percent
    }

    /// Returns the longest expected delay between admission and arrival.
    pub const fn lag(self) -> Duration {
        Duration::from_nanos(self.lag_nanos)
    }

    /// Returns the lag in nanoseconds.
    pub(crate) const fn lag_nanos(self) -> u64 {
        self.lag_nanos
    }
}

impl Default for Margin {
    /// Returns a margin of 2 % and 500 ms.
    fn default() -> Self {
        Self { percent: 2, lag_nanos: 500_000_000 }
    }
}

/// A margin of 100 % or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidMargin {
    /// The percentage that was given.
    pub percent: u8,
}

impl fmt::Display for InvalidMargin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "margin: {} % leaves nothing to use; give less than 100 %", self.percent)
    }
}

impl core::error::Error for InvalidMargin {}

/// A margin as a store keeps it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedMargin {
    percent: u8,
    lag_ns: u64,
}

impl From<Margin> for SavedMargin {
    fn from(Margin { percent, lag_nanos }: Margin) -> Self {
        Self { percent, lag_ns: lag_nanos }
    }
}

impl TryFrom<SavedMargin> for Margin {
    type Error = InvalidMargin;

    fn try_from(record: SavedMargin) -> Result<Self, InvalidMargin> {
        Self::new(record.percent, Duration::from_nanos(record.lag_ns))
    }
}
