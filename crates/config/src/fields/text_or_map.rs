use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IntoDeserializer, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value with a short form, a string, and a long form, a map. Unlike in an untagged enum of serde, the
/// kind of the value selects the form, so that errors state the problem within that form.
#[derive(Debug, Clone, PartialEq)]
pub enum TextOrMap<T, M> {
    /// The short form.
    Text(T),
    /// The long form.
    Map(M),
}

impl<'de, T: Deserialize<'de>, M: Deserialize<'de>> Deserialize<'de> for TextOrMap<T, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T, M>(PhantomData<(T, M)>);
        impl<'de, T: Deserialize<'de>, M: Deserialize<'de>> de::Visitor<'de> for Either<T, M> {
            type Value = TextOrMap<T, M>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a map")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(text.into_deserializer()).map(TextOrMap::Text)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                M::deserialize(MapAccessDeserializer::new(map)).map(TextOrMap::Map)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

impl<T: Serialize, M: Serialize> Serialize for TextOrMap<T, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Map(map) => map.serialize(serializer),
        }
    }
}

impl<T: JsonSchema, M: JsonSchema> JsonSchema for TextOrMap<T, M> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}Or{}", T::schema_name(), M::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (text, map) = (generator.subschema_for::<T>(), generator.subschema_for::<M>());
        json_schema!({"anyOf": [text, map]})
    }
}
