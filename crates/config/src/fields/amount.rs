use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use paceline_limiter::quota::Usd;

/// The amount of a limit: a whole number, or dollars with up to six decimals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Amount {
    Whole(u64),
    /// Dollars that aren't whole.
    Dollars(Usd),
}

impl Amount {
    /// Returns the amount of dollars that are these micro-dollars.
    pub(crate) fn of_usd(usd: Usd) -> Self {
        match usd.as_micros() % MICRO_DOLLARS {
            0 => Self::Whole(usd.as_micros() / MICRO_DOLLARS),
            _ => Self::Dollars(usd),
        }
    }

    /// Returns the amount as dollars, in micro-dollars.
    pub(crate) fn usd(self) -> Usd {
        match self {
            Self::Whole(dollars) => Usd::from_dollars(dollars),
            Self::Dollars(usd) => usd,
        }
    }

    /// Returns a whole amount.
    pub(crate) fn whole(self) -> Option<u64> {
        match self {
            Self::Whole(amount) => Some(amount),
            Self::Dollars(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl de::Visitor<'_> for Number {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_u64<E: de::Error>(self, amount: u64) -> Result<Amount, E> {
                Ok(Amount::Whole(amount))
            }

            fn visit_f64<E: de::Error>(self, amount: f64) -> Result<Amount, E> {
                let usd = amount.to_string().parse::<Usd>();
                let reason = "must be a whole number; dollars may have up to six decimals";
                usd.map(Amount::of_usd).map_err(|_| E::custom(format!("{reason}, not {amount}")))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(amount) => serializer.serialize_u64(*amount),
            Self::Dollars(usd) => usd.serialize(serializer),
        }
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole number; for money, dollars with up to six decimals.",
            "type": "number",
            "minimum": 0,
        })
    }
}

const MICRO_DOLLARS: u64 = 1_000_000;
