use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use super::error::ReadError;
use crate::tree::{Key, Node, Segment, Value, quote};

/// A serde deserializer of a node. It converts no types: a number is not a string, and `1.0` is not an
/// integer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    node: &'a Node,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(node: &'a Node) -> Self {
        Self { node }
    }

    pub(crate) fn mismatch(self, wanted: &str) -> ReadError {
        ReadError::value(format!("must be {wanted}, not {}", describe(&self.node.value)))
    }

    fn whole(self, most: u64) -> Result<u64, ReadError> {
        let mismatch = || self.mismatch(&format!("a whole number from 0 to {most}"));
        match &self.node.value {
            Value::Number(number) => {
                number.parse().ok().filter(|n| *n <= most).ok_or_else(mismatch)
            }
            _ => Err(mismatch()),
        }
    }

    fn text(self) -> Result<&'a str, ReadError> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            Value::Number(_) | Value::Bool(_) => Err(self.mismatch("a string (put it in quotes)")),
            _ => Err(self.mismatch("a string")),
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::Null | Value::Removed => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match number.parse() {
                Ok(whole) => visitor.visit_u64(whole),
                Err(_) => self.deserialize_f64(visitor),
            },
            Value::Text(text) => visitor.visit_str(text),
            Value::List(items) => visitor.visit_seq(Items::new(items)),
            Value::Map(entries) => visitor.visit_map(Entries::new(entries)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.node.value {
            Value::Bool(value) => visitor.visit_bool(value),
            _ => Err(self.mismatch("true or false")),
        }
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_u64(self.whole(u8::MAX.into())?)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_u64(self.whole(u16::MAX.into())?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_u64(self.whole(u32::MAX.into())?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_u64(self.whole(u64::MAX)?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::Number(number) => {
                let number = number.parse().map_err(|_| self.mismatch("a number"))?;
                visitor.visit_f64(number)
            }
            _ => Err(self.mismatch("a number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::List(items) => visitor.visit_seq(Items::new(items)),
            _ => Err(self.mismatch("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::Map(entries) => visitor.visit_map(Entries::new(entries)),
            _ => Err(self.mismatch("a map of names to values")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::Map(entries) => visitor.visit_map(Entries::new(entries)),
            _ => Err(self.mismatch(&format!("a map of {}", fields.join(", ")))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::Text(text) => {
                let name: StrDeserializer<'_, ReadError> = text.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            _ => Err(self.mismatch(&format!("one of {}", variants.join(", ")))),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

/// The entries of a map as a serde `MapAccess`, without removed ones.
#[derive(Debug)]
pub(crate) struct Entries<'a> {
    rest: std::slice::Iter<'a, (Key, Node)>,
    current: Option<&'a (Key, Node)>,
}

/// The items of a list as a serde `SeqAccess`, without removed ones.
#[derive(Debug)]
struct Items<'a> {
    rest: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(entries: &'a [(Key, Node)]) -> Self {
        Self { rest: entries.iter(), current: None }
    }

    /// Advances to the next entry.
    pub(crate) fn advance(&mut self) -> Option<&'a (Key, Node)> {
        self.current = self.rest.find(|(_, node)| !node.is_removed());
        self.current
    }

    /// Deserializes the name of the current entry.
    pub(crate) fn key<'de, K: DeserializeSeed<'de>>(
        &self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let Some((key, _)) = self.current else { return Ok(None) };
        let name: StrDeserializer<'_, ReadError> = key.name.as_str().into_deserializer();
        seed.deserialize(name)
            .map(Some)
            .map_err(|error| error.below(Segment::Key(key.name.clone())))
    }
}

impl<'a> Items<'a> {
    fn new(items: &'a [Node]) -> Self {
        Self { rest: items.iter().enumerate() }
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        self.advance();
        self.key(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some((key, node)) = self.current else {
            return Err(ReadError::value("a value without a name"));
        };
        seed.deserialize(Reader::new(node))
            .map_err(|error| error.below(Segment::Key(key.name.clone())))
    }
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some((at, node)) = self.rest.find(|(_, node)| !node.is_removed()) else {
            return Ok(None);
        };
        seed.deserialize(Reader::new(node))
            .map(Some)
            .map_err(|error| error.below(Segment::Item(at)))
    }
}

/// Describes a value in an error: its kind, or the value itself if it is short.
fn describe(value: &Value) -> String {
    match value {
        Value::Null | Value::Removed => "nothing".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.chars().take(40).collect(),
        Value::Text(text) => quote(text),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a map".to_owned(),
    }
}
