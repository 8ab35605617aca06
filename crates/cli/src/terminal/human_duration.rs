use std::fmt;
use std::time::Duration;

use paceline::Timestamp;

/// Formats a time as RFC 3339, in UTC and to the millisecond, rounded up.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let millis = i64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.3}")
}

/// A duration for people: `12s`, `3m 20s`, `1d 4h`. Seconds are rounded up; from an hour on, the
/// smaller unit is rounded to the nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HumanDuration {
    seconds: u64,
}

impl HumanDuration {
    /// Returns a duration, rounded up to seconds.
    pub(crate) fn of(length: Duration) -> Self {
        Self { seconds: length.as_secs() + u64::from(length.subsec_nanos() > 0) }
    }

    /// Returns the duration from `now` to `then`; `None` unless `then` is in the future.
    pub(crate) fn between(now: Timestamp, then: Timestamp) -> Option<Self> {
        (then > now).then(|| Self::of(then - now))
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |unit: u64| self.seconds.saturating_add(unit / 2) / unit;
        match self.seconds {
            0..MINUTE => write!(f, "{}s", self.seconds),
            MINUTE..HOUR => two_units(f, self.seconds, MINUTE, ["m", "s"]),
            HOUR..DAY => two_units(f, of(MINUTE), 60, ["h", "m"]),
            _ => two_units(f, of(HOUR), 24, ["d", "h"]),
        }
    }
}

/// Formats a total of smaller units in two units; `size` is the larger unit in smaller ones.
fn two_units(
    f: &mut fmt::Formatter<'_>,
    total: u64,
    size: u64,
    [larger, smaller]: [&str; 2],
) -> fmt::Result {
    match (total / size, total % size) {
        (whole, 0) => write!(f, "{whole}{larger}"),
        (whole, rest) => write!(f, "{whole}{larger} {rest}{smaller}"),
    }
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn duration_is_formatted_in_two_largest_units() {
        let table = [
            (1, "1s"),
            (999_999_999, "1s"),
            (1_000_000_001, "2s"),
            (59_000_000_001, "1m"),
            (200_000_000_000, "3m 20s"),
            (3_600_000_000_000, "1h"),
            (3_601_000_000_000, "1h"),
            (3_631_000_000_000, "1h 1m"),
            (86_399_000_000_000, "24h"),
            (86_400_500_000_000, "1d"),
            (100_800_000_000_000, "1d 4h"),
        ];
        for (nanos, text) in table {
            assert_eq!(
                HumanDuration::between(at(7), at(7 + nanos))
                    .expect("a time in the future")
                    .to_string(),
                text
            );
        }
        assert!(
            HumanDuration::between(at(0), Timestamp::MAX)
                .is_some_and(|span| span.to_string().contains('d'))
        );
    }

    #[test]
    fn past_time_has_no_duration() {
        assert_eq!(
            (HumanDuration::between(at(7), at(7)), HumanDuration::between(at(7), at(6))),
            (None, None)
        );
    }

    #[test]
    fn times_are_formatted_in_utc() {
        assert_eq!(rfc3339(at(1_767_225_600_000_000_001)), "2026-01-01T00:00:00.001Z");
        assert_eq!(rfc3339(at(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(Timestamp::MAX), "2554-07-21T23:34:33.710Z");
    }
}
