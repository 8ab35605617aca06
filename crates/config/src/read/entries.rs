use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess};

use super::error::ReadError;
use super::reader::Reader;
use crate::tree::{Key, Node, Segment};

/// The entries of a map as a serde `MapAccess`, without removed ones.
#[derive(Debug)]
pub(crate) struct Entries<'a> {
    rest: std::slice::Iter<'a, (Key, Node)>,
    current: Option<&'a (Key, Node)>,
}

/// The items of a list as a serde `SeqAccess`, without removed ones.
#[derive(Debug)]
pub(super) struct Items<'a> {
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
    pub(super) fn new(items: &'a [Node]) -> Self {
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
