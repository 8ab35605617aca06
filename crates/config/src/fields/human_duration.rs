use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::tree::quote;

/// A duration as a user writes it: `500ms`, `60s`, `1h30m`, `1d`; at most 366 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanDuration(
    /// The duration.
    pub Duration,
);

/// Parses a duration in the syntax of the configuration: whole numbers, each with a unit (`ms`, `s`,
/// `m`, `h`, `d`, `w`), such as `1h30m`; at most 366 days.
///
/// ```
/// use std::time::Duration;
/// use paceline_config::parse_duration;
/// assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
/// assert!(parse_duration("90").is_err());
/// ```
///
/// # Errors
/// Returns a message with the allowed syntax if the text is not a duration.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    HumanDuration::parse(text).map(|HumanDuration(length)| length)
}

impl HumanDuration {
    /// Returns the shortest duration of whole milliseconds that isn't below this one, at most 366 days.
    pub(crate) fn rounded_up(length: Duration) -> Self {
        let millis = length.as_nanos().div_ceil(1_000_000).min(u128::from(MAX_MILLIS));
        Self(Duration::from_millis(u64::try_from(millis).unwrap_or(MAX_MILLIS)))
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("must be {EXPECTED}, not {}", quote(text));
        let (mut rest, mut millis) = (text, 0_u64);
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let (number, unit) = rest.split_at(digits);
            let letters = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
            let (_, length) =
                UNITS.iter().find(|(name, _)| *name == &unit[..letters]).ok_or_else(wrong)?;
            let part = match number.parse::<u64>() {
                Ok(number) => number.checked_mul(*length),
                Err(_) if number.is_empty() => return Err(wrong()),
                Err(_) => None,
            };
            let sum =
                part.and_then(|part| millis.checked_add(part)).filter(|sum| *sum <= MAX_MILLIS);
            millis = sum.ok_or("must be at most 366d")?;
            rest = &unit[letters..];
        }
        match text.is_empty() {
            true => Err(wrong()),
            false => Ok(Self(Duration::from_millis(millis))),
        }
    }
}

impl fmt::Display for HumanDuration {
    /// Formats the duration in the largest unit in which it is a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let whole = |unit: &&(&str, u64)| millis > 0 && millis.is_multiple_of(u128::from(unit.1));
        match UNITS.iter().filter(|unit| unit.0 != "w").find(whole) {
            Some((unit, length)) => write!(f, "{}{unit}", millis / u128::from(*length)),
            None => f.write_str("0s"),
        }
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = HumanDuration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<HumanDuration, E> {
                HumanDuration::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for HumanDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A duration: whole numbers, each with a unit (ms, s, m, h, d, w); at most 366d.",
            "pattern": "^([0-9]+(ms|s|m|h|d|w))+$",
            "examples": ["500ms", "60s", "1h30m", "1d"],
        })
    }
}

const EXPECTED: &str = "a duration with units (ms, s, m, h, d, w), such as 500ms, 60s or 1h30m";

/// The units in milliseconds, from the longest to the shortest.
const UNITS: [(&str, u64); 6] = [
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

const MAX_MILLIS: u64 = 366 * 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_without_unit_is_refused() {
        for (text, millis) in
            [("500ms", 500), ("60s", 60_000), ("1h30m", 5_400_000), ("1d", 86_400_000), ("0s", 0)]
        {
            assert_eq!(
                HumanDuration::parse(text).unwrap().0,
                Duration::from_millis(millis),
                "{text}"
            );
        }
        for text in
            ["", "60", "s", "1.5s", "-1s", "1 s", "1S", "367d", "99999999999999999999s", "1é"]
        {
            assert!(HumanDuration::parse(text).is_err(), "{text}");
        }
        assert_eq!(HumanDuration(Duration::from_millis(90_000)).to_string(), "90s");
    }
}
