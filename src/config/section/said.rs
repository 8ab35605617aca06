use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, MapAccess};
use serde_json::Value as Json;

use super::held::{Held, HeldSections};
use super::section::Section;
use super::sections::Sections;
use crate::config::check::Check;
use crate::config::fields::Fields;
use crate::config::read::{Entries, ReadError, Reader};
use crate::config::tree::{Node, Step, Steps, Value};

/// What is said in all sections.
#[derive(Clone)]
pub(in crate::config) struct Said {
    pub(in crate::config) fields: Fields,
    sections: Vec<Arc<dyn SaidSection>>,
}

/// What is said of a registered section, whatever its type.
pub(super) trait SaidSection: Send + Sync {
    fn name(&self) -> &'static str;

    fn to_json(&self) -> Json;

    fn check(&self, check: &mut Check<'_>) -> Arc<dyn Held>;
}

/// The fields of a section.
pub(super) struct SaidFields<S: Section>(pub(super) S::Fields);

impl<S: Section> SaidSection for SaidFields<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn to_json(&self) -> Json {
        serde_json::to_value(&self.0).unwrap_or_default()
    }

    fn check(&self, check: &mut Check<'_>) -> Arc<dyn Held> {
        Arc::new(S::check(&self.0, &Steps::to([S::NAME]), check))
    }
}

impl Said {
    /// # Errors
    /// The first thing that can't be read, in the order of the file.
    pub(in crate::config) fn read(tree: &Node, sections: &Sections) -> Result<Self, ReadError> {
        let Value::Map(entries) = &tree.value else {
            let names = sections.names().join(", ");
            return Err(Reader::new(tree).wrong(&format!("a map of {names}")));
        };
        let mut said = Vec::new();
        let root = Root { entries: Entries::new(entries), sections, said: &mut said };
        let fields = Fields::deserialize(MapAccessDeserializer::new(root))?;
        Ok(Self { fields, sections: said })
    }

    /// The values of the registered sections.
    pub(in crate::config) fn check(
        &self,
        sections: &Sections,
        check: &mut Check<'_>,
    ) -> HeldSections {
        let held = sections.iter().map(|section| {
            let said = self.sections.iter().find(|said| said.name() == section.name());
            said.cloned().unwrap_or_else(|| section.unsaid()).check(check)
        });
        HeldSections::new(held.collect())
    }

    /// What is said, with the defaults of what isn't.
    pub(in crate::config) fn effective(&self) -> Json {
        let mut all = serde_json::to_value(self.fields.clone().effective()).unwrap_or_default();
        for section in &self.sections {
            all[section.name()] = section.to_json();
        }
        all
    }
}

/// The entries of the whole file for the library's own fields; those of registered sections are read
/// on the way.
struct Root<'a> {
    entries: Entries<'a>,
    sections: &'a Sections,
    said: &'a mut Vec<Arc<dyn SaidSection>>,
}

impl Root<'_> {
    /// # Errors
    /// Nobody knows a section of this name, or what it says can't be read.
    fn read(&mut self, name: &str, node: &Node) -> Result<(), ReadError> {
        match self.sections.named(name) {
            Some(section) => self.said.extend(section.read(node)?),
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
            read.map_err(|error| error.below(Step::Key(key.name.clone())))?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        self.entries.next_value_seed(seed)
    }
}
