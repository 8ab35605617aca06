use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

/// An integer within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct BoundedInteger<const MIN: u64, const MAX: u64>(pub(super) u64);

/// An amount of a dimension, at most 2^53 - 1, which every JSON parser reads exactly (RFC 8259, 6).
pub(super) type Amount = BoundedInteger<0, 9_007_199_254_740_991>;

/// A time to wait in milliseconds, at most an hour.
pub(super) type WaitMillis = BoundedInteger<0, 3_600_000>;

/// The lifetime of a reservation in milliseconds, at most an hour.
pub(super) type TtlMillis = BoundedInteger<1, 3_600_000>;

impl<const MIN: u64, const MAX: u64> From<u64> for BoundedInteger<MIN, MAX> {
    /// Clamps a number to the bounds.
    fn from(number: u64) -> Self {
        Self(number.clamp(MIN, MAX))
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for BoundedInteger<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> de::Visitor<'_> for Number<MIN, MAX> {
            type Value = BoundedInteger<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an integer from {MIN} to {MAX}")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                let error = || E::invalid_value(de::Unexpected::Unsigned(number), &self);
                (MIN..=MAX).contains(&number).then_some(BoundedInteger(number)).ok_or_else(error)
            }

            /// `5.0` is an integer, too (JSON Schema 2020-12, 6.1.1).
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
                let error = || E::invalid_type(de::Unexpected::Float(number), &self);
                let is_exact = number.fract() == 0.0 && (0.0..=MAX_EXACT).contains(&number);
                if !is_exact {
                    return Err(error());
                }
                self.visit_u64(number as u64)
            }
        }
        deserializer.deserialize_u64(Number)
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for BoundedInteger<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("IntegerFrom{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": MIN, "maximum": MAX})
    }
}

/// The largest integer that `f64` distinguishes from the next: 2^53 - 1.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_integer_rejects_fractions_and_out_of_range() {
        type Small = BoundedInteger<1, 9>;
        for (text, read) in [("1", Some(1)), ("9.0", Some(9)), ("0", None), ("10", None)] {
            assert_eq!(serde_json::from_str::<Small>(text).ok().map(|n| n.0), read, "{text}");
        }
        for text in ["1.5", "-1", "\"1\"", "null", "1e400", "99999999999999999999"] {
            let error = serde_json::from_str::<Small>(text).map(|n| n.0).unwrap_err().to_string();
            assert!(!error.is_empty(), "{text}");
        }
        let error = serde_json::from_str::<Amount>("9007199254740992").unwrap_err().to_string();
        assert!(error.contains("an integer from 0 to 9007199254740991"), "{error}");
    }
}
