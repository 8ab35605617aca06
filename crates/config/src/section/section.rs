use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::check::Check;
use crate::tree::FieldPath;

/// A section of the configuration file that another crate defines. See the [module](super).
pub trait Section: fmt::Debug + Clone + PartialEq + Send + Sync + 'static {
    /// The name of the section in the file, different from the names of the library's own sections.
    const NAME: &'static str;

    /// The fields of the section that are maps with entry names chosen by the user. Such names keep
    /// their case in the names of environment variables; all other parts are lowercased.
    const MAP_FIELDS: &'static [&'static str] = &[];

    /// The fields of the section in the file. The default applies if the file has no such section. The
    /// schema is generated from this type.
    type Fields: DeserializeOwned + Serialize + JsonSchema + Default + Send + Sync + 'static;

    /// Converts the fields to a value, and reports problems to `check`. The value is used only if there
    /// are no problems. `path` is the path of the section.
    fn check(fields: &Self::Fields, path: &FieldPath, check: &mut Check<'_>) -> Self;

    /// Returns the value in effect when a running program with the value `previous` reloads a file
    /// that states `self`. Fields that need a restart keep their previous value; by default, all do.
    #[must_use]
    fn followed_from(&self, previous: &Self) -> Self {
        previous.clone()
    }
}
