use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::section::Section;
use super::section_fields::{FieldsOf, SectionFields};
use crate::fields::Fields;
use crate::read::{ReadError, Reader};
use crate::tree::Node;

/// A set of [sections](super::Section) that are read in addition to those of the library.
#[derive(Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Sections(Vec<Registered>);

#[derive(Clone, Copy)]
pub(super) struct Registered(&'static dyn SectionType);

/// A type of section, as a trait object.
pub(super) trait SectionType: Send + Sync {
    fn name(&self) -> &'static str;

    fn map_fields(&self) -> &'static [&'static str];

    fn id(&self) -> TypeId;

    /// Reads the fields of the section; `None` if the node is null.
    fn read(&self, node: &Node) -> Result<Option<Arc<dyn SectionFields>>, ReadError>;

    fn default_fields(&self) -> Arc<dyn SectionFields>;

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema;
}

struct TypeOf<S>(PhantomData<fn() -> S>);

impl<S: Section> SectionType for TypeOf<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn map_fields(&self) -> &'static [&'static str] {
        S::MAP_FIELDS
    }

    fn id(&self) -> TypeId {
        TypeId::of::<S>()
    }

    fn read(&self, node: &Node) -> Result<Option<Arc<dyn SectionFields>>, ReadError> {
        let fields = Option::<S::Fields>::deserialize(Reader::new(node))?;
        Ok(fields.map(|fields| Arc::new(FieldsOf::<S>(fields)) as Arc<_>))
    }

    fn default_fields(&self) -> Arc<dyn SectionFields> {
        Arc::new(FieldsOf::<S>(S::Fields::default()))
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = generator.subschema_for::<Option<S::Fields>>();
        if let Some(description) = S::Fields::json_schema(generator).get("description") {
            schema.insert("description".into(), description.clone());
        }
        schema
    }
}

impl Sections {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the section `S`. It replaces another section of the same name.
    ///
    /// # Panics
    /// Panics if the library has a section of that name.
    pub fn with<S: Section>(mut self) -> Self {
        assert!(!Fields::SECTIONS.contains(&S::NAME), "`{}` is a section of paceline", S::NAME);
        self.0.retain(|registered| registered.0.name() != S::NAME);
        self.0.push(Registered(&TypeOf::<S>(PhantomData)));
        self
    }

    /// Returns the names of all sections that a file may have.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let others = self.iter().map(SectionType::name).filter(|name| !RESERVED.contains(name));
        Fields::SECTIONS.into_iter().chain(RESERVED).chain(others).collect()
    }

    /// Returns the names of sections that a file may have, but that are not read.
    pub(crate) fn unregistered(&self) -> impl Iterator<Item = &'static str> {
        RESERVED.into_iter().filter(|name| self.named(name).is_none())
    }

    /// Returns `true` if the user chooses the entry names of the map at this path.
    pub(crate) fn has_user_names(&self, path: &[&str]) -> bool {
        match path {
            ["quotas"] | ["waiting", "bands" | "weights"] => true,
            [section, field] => {
                self.named(section).is_some_and(|section| section.map_fields().contains(field))
            }
            _ => false,
        }
    }

    /// Returns the name and the schema of each section.
    pub(crate) fn schemas(
        &self,
        generator: &mut SchemaGenerator,
    ) -> impl Iterator<Item = (&'static str, Schema)> {
        self.iter().map(|section| (section.name(), section.schema(generator)))
    }

    pub(super) fn named(&self, name: &str) -> Option<&'static dyn SectionType> {
        self.iter().find(|section| section.name() == name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'static dyn SectionType> {
        self.0.iter().map(|registered| registered.0)
    }
}

impl PartialEq for Registered {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Eq for Registered {}

impl fmt::Debug for Sections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(SectionType::name)).finish()
    }
}

/// The sections of paceline's other crates, which a file may have even if they are not registered.
const RESERVED: [&str; 1] = ["serve"];
