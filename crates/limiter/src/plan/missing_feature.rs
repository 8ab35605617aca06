use std::fmt;

use super::regex_name::REGEX;

/// An error: the program was built without a Cargo feature of this crate that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingFeature {
    /// The item that needs the feature.
    pub what: String,
    /// The name of the feature in Cargo.toml.
    pub feature: &'static str,
}

impl MissingFeature {
    /// Returns an error if a quota of this name needs a feature that is missing.
    pub(crate) fn of_quota(name: &str) -> Result<(), Self> {
        match name.starts_with(REGEX) && cfg!(not(feature = "regex")) {
            true => Err(Self { what: format!("the quota `{name}`"), feature: "regex" }),
            false => Ok(()),
        }
    }
}

impl fmt::Display for MissingFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, feature } = self;
        write!(f, "{what}: needs the Cargo feature `{feature}`; enable it for the crate `paceline`")
    }
}

impl std::error::Error for MissingFeature {}
