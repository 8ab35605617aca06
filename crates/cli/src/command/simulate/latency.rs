use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A range of latencies, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    min: Duration,
    max: Duration,
}

impl Latency {
    /// Returns the shortest latency.
    pub fn min(self) -> Duration {
        self.min
    }

    /// Returns the longest latency.
    pub fn max(self) -> Duration {
        self.max
    }
}

impl FromStr for Latency {
    type Err = InvalidLatency;

    /// Parses `MIN..MAX` or one number, in milliseconds.
    fn from_str(text: &str) -> Result<Self, InvalidLatency> {
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let millis = |text: &str| text.parse().ok().map(Duration::from_millis);
        match (millis(min), millis(max)) {
            (Some(min), Some(max)) if min <= max => Ok(Self { min, max }),
            _ => Err(InvalidLatency { text: text.to_owned() }),
        }
    }
}

/// An invalid range of latencies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidLatency {
    /// The given text.
    pub text: String,
}

impl fmt::Display for InvalidLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a latency; write it as MIN..MAX, such as 50..800", self.text)
    }
}

impl std::error::Error for InvalidLatency {}
