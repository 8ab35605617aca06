use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use paceline::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// A time, serialized as RFC 3339 in UTC, to the nanosecond:
/// `2026-01-01T00:00:00.000000000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time(pub(super) Timestamp);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 64 bits reach the year 2554, jiff reaches 9999.
        let time = jiff::Timestamp::from_nanosecond(i128::from(self.0.as_nanos()));
        let time = time.unwrap_or(jiff::Timestamp::MAX);
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

/// Returns a duration in whole milliseconds, rounded up.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_with_nanoseconds() {
        let time = |nanos| Time(Timestamp::from_nanos(nanos)).to_string();
        assert_eq!(time(1_767_225_600_000_000_001), "2026-01-01T00:00:00.000000001Z");
        assert_eq!(time(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(time(u64::MAX), "2554-07-21T23:34:33.709551615Z");
    }
}
