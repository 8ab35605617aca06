use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::said::{SaidFields, SaidSection};
use super::section::Section;
use crate::config::fields::Fields;
use crate::config::read::{ReadError, Reader};
use crate::config::tree::Node;

/// The sections that are read besides those of the library: see the [module](super).
#[derive(Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Sections(Vec<Registered>);

#[derive(Clone, Copy)]
pub(super) struct Registered(&'static dyn Kind);

/// A section that is registered, whatever its type.
pub(super) trait Kind: Send + Sync {
    fn name(&self) -> &'static str;

    fn own_names(&self) -> &'static [&'static str];

    fn id(&self) -> TypeId;

    /// What is said here of it; `None` if that is nothing.
    fn read(&self, node: &Node) -> Result<Option<Arc<dyn SaidSection>>, ReadError>;

    /// What counts where nothing is said of it.
    fn unsaid(&self) -> Arc<dyn SaidSection>;

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema;
}

struct Of<S>(PhantomData<fn() -> S>);

impl<S: Section> Kind for Of<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn own_names(&self) -> &'static [&'static str] {
        S::OWN_NAMES
    }

    fn id(&self) -> TypeId {
        TypeId::of::<S>()
    }

    fn read(&self, node: &Node) -> Result<Option<Arc<dyn SaidSection>>, ReadError> {
        let fields = Option::<S::Fields>::deserialize(Reader::new(node))?;
        Ok(fields.map(|fields| Arc::new(SaidFields::<S>(fields)) as Arc<_>))
    }

    fn unsaid(&self) -> Arc<dyn SaidSection> {
        Arc::new(SaidFields::<S>(S::Fields::default()))
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = generator.subschema_for::<Option<S::Fields>>();
        if let Some(about) = S::Fields::json_schema(generator).get("description") {
            schema.insert("description".into(), about.clone());
        }
        schema
    }
}

impl Sections {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// These, and one more; in place of another of that name.
    ///
    /// # Panics
    /// If the library itself has a section of that name.
    pub fn with<S: Section>(mut self) -> Self {
        assert!(!Fields::SECTIONS.contains(&S::NAME), "`{}` is a section of tollgate", S::NAME);
        self.0.retain(|registered| registered.0.name() != S::NAME);
        self.0.push(Registered(&Of::<S>(PhantomData)));
        self
    }

    /// The names of all sections that the file may have.
    pub(in crate::config) fn names(&self) -> Vec<&'static str> {
        let others = self.iter().map(Kind::name).filter(|name| !OTHERS.contains(name));
        Fields::SECTIONS.into_iter().chain(OTHERS).chain(others).collect()
    }

    /// The names of those that the file may have, and that aren't read.
    pub(in crate::config) fn unread(&self) -> impl Iterator<Item = &'static str> {
        OTHERS.into_iter().filter(|name| self.named(name).is_none())
    }

    /// Whether the names of the entries of the map at the end of this way are the user's own.
    pub(in crate::config) fn has_own_names(&self, way: &[&str]) -> bool {
        match way {
            ["quotas"] => true,
            [section, field] => {
                self.named(section).is_some_and(|section| section.own_names().contains(field))
            }
            _ => false,
        }
    }

    /// Of each its name, and the schema of what it says.
    pub(in crate::config) fn schemas(
        &self,
        generator: &mut SchemaGenerator,
    ) -> impl Iterator<Item = (&'static str, Schema)> {
        self.iter().map(|section| (section.name(), section.schema(generator)))
    }

    pub(super) fn named(&self, name: &str) -> Option<&'static dyn Kind> {
        self.iter().find(|section| section.name() == name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'static dyn Kind> {
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
        f.debug_set().entries(self.iter().map(Kind::name)).finish()
    }
}

/// Those of tollgate's other crates: a file may have them whoever reads it.
const OTHERS: [&str; 1] = ["serve"];
