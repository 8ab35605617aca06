use std::borrow::Cow;
use std::fmt;

use paceline_limiter::limiter::Priority;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::tree::quote;

/// A priority as a user writes it: `interactive`, `normal`, `batch`, or a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityText(
    /// The priority.
    pub Priority,
);

impl<'de> Deserialize<'de> for PriorityText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl de::Visitor<'_> for TextOrNumber {
            type Value = PriorityText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PriorityText, E> {
                let named = NAMES.iter().find(|(name, _)| *name == text);
                let named = named.map(|(_, priority)| PriorityText(*priority));
                named.ok_or_else(|| wrong(&quote(text)))
            }

            fn visit_u64<E: de::Error>(self, level: u64) -> Result<PriorityText, E> {
                let level = i8::try_from(level).map_err(|_| wrong(&level))?;
                Ok(PriorityText(Priority::new(level)))
            }

            fn visit_i64<E: de::Error>(self, level: i64) -> Result<PriorityText, E> {
                let level = i8::try_from(level).map_err(|_| wrong(&level))?;
                Ok(PriorityText(Priority::new(level)))
            }

            /// Negative numbers of a configuration file.
            fn visit_f64<E: de::Error>(self, level: f64) -> Result<PriorityText, E> {
                let level = level.to_string().parse().map_err(|_| wrong(&level))?;
                Ok(PriorityText(Priority::new(level)))
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}

impl Serialize for PriorityText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match NAMES.iter().find(|(_, priority)| *priority == self.0) {
            Some((name, _)) => serializer.serialize_str(name),
            None => serializer.serialize_i8(self.0.level()),
        }
    }
}

impl JsonSchema for PriorityText {
    fn schema_name() -> Cow<'static, str> {
        "Priority".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A priority: interactive (10), normal (0), batch (-10), or a number. The highest goes first.",
            "anyOf": [
                {"enum": ["interactive", "normal", "batch"]},
                {"type": "integer", "minimum": i8::MIN, "maximum": i8::MAX},
            ],
            "examples": ["batch", 5],
        })
    }
}

fn wrong<E: de::Error>(given: &dyn fmt::Display) -> E {
    E::custom(format!("must be {EXPECTED}, not {given}"))
}

const NAMES: [(&str, Priority); 3] = [
    ("interactive", Priority::INTERACTIVE),
    ("normal", Priority::NORMAL),
    ("batch", Priority::BATCH),
];

const EXPECTED: &str = "interactive, normal, batch or a whole number from -128 to 127";
