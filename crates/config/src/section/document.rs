use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, MapAccess};
use serde_json::Value as Json;

use super::section_fields::SectionFields;
use super::sections::Sections;
use super::values::SectionValues;
use crate::check::Check;
use crate::fields::Fields;
use crate::read::{Entries, ReadError, Reader};
use crate::tree::{Node, Segment, Value};

/// The fields of all sections of a configuration.
#[derive(Clone)]
pub(crate) struct Document {
    pub(crate) fields: Fields,
    sections: Vec<Arc<dyn SectionFields>>,
}

impl Document {
    /// Reads the whole configuration.
    ///
    /// # Errors
    /// Returns the first error in the order of the file.
    pub(crate) fn read(tree: &Node, sections: &Sections) -> Result<Self, ReadError> {
        let Value::Map(entries) = &tree.value else {
            let names = sections.names().join(", ");
            return Err(Reader::new(tree).mismatch(&format!("a map of {names}")));
        };
        let mut found = Vec::new();
        let root = Root { entries: Entries::new(entries), sections, found: &mut found };
        let fields = Fields::deserialize(MapAccessDeserializer::new(root))?;
        Ok(Self { fields, sections: found })
    }

    /// Converts the fields of the registered sections to their values.
    pub(crate) fn check(&self, sections: &Sections, check: &mut Check<'_>) -> SectionValues {
        let values = sections.iter().map(|section| {
            let fields = self.sections.iter().find(|fields| fields.name() == section.name());
            fields.cloned().unwrap_or_else(|| section.default_fields()).check(check)
        });
        SectionValues::new(values.collect())
    }

    /// Returns all fields with the defaults of the library's sections, and of the other sections that
    /// the configuration has.
    pub(crate) fn effective(&self) -> Json {
        let mut all = serde_json::to_value(self.fields.clone().effective()).unwrap_or_default();
        for section in &self.sections {
            all[section.name()] = section.to_json();
        }
        all
    }
}

/// A serde `MapAccess` over the library's sections, which also reads the registered sections on the way.
struct Root<'a> {
    entries: Entries<'a>,
    sections: &'a Sections,
    found: &'a mut Vec<Arc<dyn SectionFields>>,
}

impl Root<'_> {
    /// Reads an entry that is not a section of the library.
    ///
    /// # Errors
    /// Returns an error if no section has this name, or its fields can't be read.
    fn read(&mut self, name: &str, node: &Node) -> Result<(), ReadError> {
        match self.sections.named(name) {
            Some(section) => self.found.extend(section.read(node)?),
            None if self.sections.names().contains(&name) => {}
            None => return Err(ReadError::unknown_name(name, &self.sections.names())),
        }
        Ok(())
    }
}

impl<'de> MapAccess<'de> for Root<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        while let Some((key, node)) = self.entries.advance() {
            if Fields::SECTIONS.contains(&key.name.as_str()) {
                return self.entries.key(seed);
            }
            let read = self.read(&key.name, node);
            read.map_err(|error| error.below(Segment::Key(key.name.clone())))?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        self.entries.next_value_seed(seed)
    }
}
