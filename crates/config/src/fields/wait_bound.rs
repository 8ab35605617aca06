use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::human_duration::HumanDuration;

/// The longest wait as a user writes it: a duration, or `unlimited`, which is [`Duration::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitBound(pub(crate) Duration);

impl<'de> Deserialize<'de> for WaitBound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = WaitBound;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with units, such as 60s, or `unlimited`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<WaitBound, E> {
                if text == UNLIMITED {
                    return Ok(WaitBound(Duration::MAX));
                }
                let length = HumanDuration::parse(text).map_err(E::custom)?;
                Ok(WaitBound(length.0))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl Serialize for WaitBound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Duration::MAX => serializer.serialize_str(UNLIMITED),
            length => HumanDuration(length).serialize(serializer),
        }
    }
}

impl JsonSchema for WaitBound {
    fn schema_name() -> Cow<'static, str> {
        "WaitBound".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let duration = generator.subschema_for::<HumanDuration>();
        json_schema!({"anyOf": [duration, {"const": UNLIMITED}]})
    }
}

const UNLIMITED: &str = "unlimited";
