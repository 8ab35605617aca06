use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

/// A whole number within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Whole<const LEAST: u64, const MOST: u64>(pub(super) u64);

/// An amount of a dimension; at most what every JSON parser reads exactly (RFC 8259, 6): 2^53 - 1.
pub(super) type Amount = Whole<0, 9_007_199_254_740_991>;

/// How long to wait, in milliseconds; at most an hour.
pub(super) type WaitMillis = Whole<0, 3_600_000>;

/// How long a reservation is held, in milliseconds; at most an hour.
pub(super) type TtlMillis = Whole<1, 3_600_000>;

impl<const LEAST: u64, const MOST: u64> From<u64> for Whole<LEAST, MOST> {
    /// The nearest within the bounds.
    fn from(number: u64) -> Self {
        Self(number.clamp(LEAST, MOST))
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<const LEAST: u64, const MOST: u64>;
        impl<const LEAST: u64, const MOST: u64> de::Visitor<'_> for Number<LEAST, MOST> {
            type Value = Whole<LEAST, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {LEAST} to {MOST}")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                let wrong = || E::invalid_value(de::Unexpected::Unsigned(number), &self);
                (LEAST..=MOST).contains(&number).then_some(Whole(number)).ok_or_else(wrong)
            }

            /// `5.0` is as whole as 5 (JSON Schema 2020-12, 6.1.1).
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
                let wrong = || E::invalid_type(de::Unexpected::Float(number), &self);
                let exact = number.fract() == 0.0 && (0.0..=EXACT).contains(&number);
                if !exact {
                    return Err(wrong());
                }
                self.visit_u64(number as u64)
            }
        }
        deserializer.deserialize_u64(Number)
    }
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Whole<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("WholeFrom{LEAST}To{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    }
}

/// The largest whole number that is told apart from the next: 2^53 - 1.
const EXACT: f64 = 9_007_199_254_740_991.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_within_the_bounds_are_read() {
        type Small = Whole<1, 9>;
        for (text, read) in [("1", Some(1)), ("9.0", Some(9)), ("0", None), ("10", None)] {
            assert_eq!(serde_json::from_str::<Small>(text).ok().map(|n| n.0), read, "{text}");
        }
        for text in ["1.5", "-1", "\"1\"", "null", "1e400", "99999999999999999999"] {
            let error = serde_json::from_str::<Small>(text).map(|n| n.0).unwrap_err().to_string();
            assert!(!error.is_empty(), "{text}");
        }
        let error = serde_json::from_str::<Amount>("9007199254740992").unwrap_err().to_string();
        assert!(error.contains("a whole number from 0 to 9007199254740991"), "{error}");
    }
}
