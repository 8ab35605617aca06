use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::check::Check;
use crate::config::tree::Steps;

/// A section of the file that belongs to another crate: see the [module](super).
pub trait Section: fmt::Debug + Clone + PartialEq + Send + Sync + 'static {
    /// Its name in the file; none of the sections that are read anyway.
    const NAME: &'static str;

    /// Those of its fields that are maps with names of the user's own. In an environment variable such
    /// a name is as it stands there, and any other in small letters.
    const OWN_NAMES: &'static [&'static str] = &[];

    /// What the file says of it, field by field; the default is what counts where it says nothing. Of
    /// these types the schema is made, too.
    type Fields: DeserializeOwned + Serialize + JsonSchema + Default + Send + Sync + 'static;

    /// The value that the fields say together. What is wrong with them is noted in `check`; the value
    /// is of use where nothing is. `steps` is the way to this section.
    fn check(fields: &Self::Fields, steps: &Steps, check: &mut Check<'_>) -> Self;

    /// What a program that runs by `previous` runs by at once when the file now says this; what it
    /// can't change while it runs stays as it was. Unless this says otherwise, that is everything.
    #[must_use]
    fn followed_from(&self, previous: &Self) -> Self {
        let _ = self;
        previous.clone()
    }
}
