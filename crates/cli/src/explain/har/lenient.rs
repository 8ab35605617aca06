//! Lenient deserialization: a member of another type is replaced by its default.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde_json::value::RawValue;

/// Deserializes a value, or its default if it has another type. For `deserialize_with`.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    json: D,
) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(json)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// A value, or its default if it has another type.
pub(super) struct Lenient<T>(pub(super) T);

impl<'de, T: DeserializeOwned + Default> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        lenient(json).map(Self)
    }
}

/// The bytes of a JSON string, including lone surrogates, which browsers write where a text was
/// cut.
#[derive(Default)]
pub(super) struct Text(pub(super) Vec<u8>);

impl Text {
    pub(super) fn into_string(self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_byte_buf(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text, E> {
        Ok(Text(bytes.to_vec()))
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Text, E> {
        Ok(Text(bytes))
    }
}
