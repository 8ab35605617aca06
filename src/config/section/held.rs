use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::section::Section;
use crate::config::Config;

/// The values of the registered sections, in the order in which they were registered.
#[derive(Debug, Clone, Default)]
pub(in crate::config) struct HeldSections(Vec<Arc<dyn Held>>);

/// The value of a section, whatever its type.
pub(super) trait Held: Any + fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// See [`Section::followed_from`].
    fn followed_from(&self, previous: &dyn Any) -> Arc<dyn Held>;

    fn is(&self, other: &dyn Any) -> bool;
}

impl<S: Section> Held for S {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn followed_from(&self, previous: &dyn Any) -> Arc<dyn Held> {
        let previous = previous.downcast_ref::<S>();
        Arc::new(previous.map_or_else(|| self.clone(), |before| S::followed_from(self, before)))
    }

    fn is(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<S>() == Some(self)
    }
}

impl Config {
    /// The value of a section that was [registered](super::Sections) when this was read: its defaults,
    /// if nothing was said of it. `None` if it wasn't registered.
    pub fn section<S: Section>(&self) -> Option<&S> {
        self.sections.any(S::NAME)?.downcast_ref()
    }
}

impl HeldSections {
    pub(super) fn new(sections: Vec<Arc<dyn Held>>) -> Self {
        Self(sections)
    }

    /// What a program that runs by `previous` runs by at once when the file now says this.
    pub(in crate::config) fn followed_from(&self, previous: &Self) -> Self {
        let followed = |held: &Arc<dyn Held>| match previous.any(held.name()) {
            Some(previous) => (**held).followed_from(previous),
            None => Arc::clone(held),
        };
        Self(self.0.iter().map(followed).collect())
    }

    /// The names of those that aren't the same as in `others`.
    pub(in crate::config) fn differing(&self, others: &Self) -> impl Iterator<Item = &'static str> {
        let differs =
            |held: &&Arc<dyn Held>| others.any(held.name()).is_none_or(|other| !(**held).is(other));
        self.0.iter().filter(differs).map(|held| (**held).name())
    }

    fn any(&self, name: &str) -> Option<&dyn Any> {
        let held: &dyn Held = &**self.0.iter().find(|held| (***held).name() == name)?;
        Some(held)
    }
}
