use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A JSON value without duplicate fields: of two limits with the same name, one would be ignored
/// silently.
#[derive(Debug)]
pub(super) struct UniqueFields(pub(super) Value);

struct ValueVisitor;

impl<'de> Deserialize<'de> for UniqueFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = UniqueFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<UniqueFields, E> {
        Ok(UniqueFields(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<UniqueFields, E> {
        Ok(UniqueFields(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<UniqueFields, E> {
        Ok(UniqueFields(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<UniqueFields, E> {
        Ok(UniqueFields(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<UniqueFields, E> {
        Ok(UniqueFields(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<UniqueFields, E> {
        Ok(UniqueFields(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueFields, A::Error> {
        let mut all = Vec::new();
        while let Some(UniqueFields(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(UniqueFields(all.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<UniqueFields, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if all.contains_key(&name) {
                let name = name.escape_debug();
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            let UniqueFields(value) = fields.next_value()?;
            all.insert(name, value);
        }
        Ok(UniqueFields(Value::Object(all)))
    }
}
