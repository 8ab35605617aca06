use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// A time in nanoseconds since the epoch, told as RFC 3339 has it, in UTC and to the nanosecond:
/// `2026-01-01T00:00:00.000000000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time(pub(super) u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Times of 64 bits end in 2554, those of jiff in 9999.
        let time = Timestamp::from_nanosecond(i128::from(self.0)).unwrap_or(Timestamp::MAX);
        write!(f, "{time:.9}")
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// Nanoseconds in whole milliseconds, rounded up.
pub(super) fn millis(nanos: u64) -> u64 {
    nanos.div_ceil(NANOS_PER_MILLI)
}

/// Milliseconds in nanoseconds.
pub(super) fn nanos(millis: u64) -> u64 {
    millis.saturating_mul(NANOS_PER_MILLI)
}

const NANOS_PER_MILLI: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_to_the_nanosecond_whichever_they_are() {
        assert_eq!(Time(1_767_225_600_000_000_001).to_string(), "2026-01-01T00:00:00.000000001Z");
        assert_eq!(Time(0).to_string(), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(Time(u64::MAX).to_string(), "2554-07-21T23:34:33.709551615Z");
    }
}
