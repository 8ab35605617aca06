use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::section::Section;

/// The values of the registered sections, in the order of registration.
#[derive(Debug, Clone, Default)]
pub(crate) struct SectionValues(Vec<Arc<dyn SectionValue>>);

/// The value of a section of any type.
pub(super) trait SectionValue: Any + fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// See [`Section::followed_from`].
    fn followed_from(&self, previous: &dyn Any) -> Arc<dyn SectionValue>;

    fn equals(&self, other: &dyn Any) -> bool;
}

impl<S: Section> SectionValue for S {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn followed_from(&self, previous: &dyn Any) -> Arc<dyn SectionValue> {
        let previous = previous.downcast_ref::<S>();
        Arc::new(previous.map_or_else(|| self.clone(), |before| S::followed_from(self, before)))
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<S>() == Some(self)
    }
}

impl SectionValues {
    pub(super) fn new(values: Vec<Arc<dyn SectionValue>>) -> Self {
        Self(values)
    }

    /// Returns the values in effect in a running program with the values `previous`.
    pub(crate) fn followed_from(&self, previous: &Self) -> Self {
        let followed = |value: &Arc<dyn SectionValue>| match previous.get((**value).name()) {
            Some(previous) => (**value).followed_from(previous),
            None => Arc::clone(value),
        };
        Self(self.0.iter().map(followed).collect())
    }

    /// Returns the names of the sections whose values differ from those of `other`.
    pub(crate) fn differing(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        let differs = |value: &&Arc<dyn SectionValue>| {
            other.get((***value).name()).is_none_or(|other| !(***value).equals(other))
        };
        self.0.iter().filter(differs).map(|value| (**value).name())
    }

    /// Returns the value of the section of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&dyn Any> {
        let value: &dyn SectionValue = &**self.0.iter().find(|value| (***value).name() == name)?;
        Some(value)
    }
}
