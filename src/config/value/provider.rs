use crate::config::Address;
use crate::provider::Profile;

/// A provider that is called.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// Its name: a built-in one, or your own.
    pub name: String,
    /// Its rules.
    pub profile: Profile,
    /// Where it is, where that was said.
    pub base_url: Option<Address>,
}
