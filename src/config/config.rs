use std::path::Path;

use super::error::ConfigError;
use super::load::Layers;
use super::section::{Section, SectionValues, Sections};
use super::tree::Source;
use super::value::{Bus, Cluster, ConfiguredQuota, Retry, Storage, Waiting};
use crate::limiter::{Reduction, UnknownKey};
use crate::provider::Profile;
use crate::quota::{Margin, Share};

/// A valid configuration. See the [module](super) for what the file says.
///
/// ```
/// use tollgate::config::Config;
///
/// let config = Config::parse("
/// providers: [openai]
/// quotas:
///   gpt-4o: {rpm: 500, tpm: 30000, rpd: 10000}
/// ")?;
/// let limiter = config.builder().build()?;
/// assert_eq!(limiter.quotas().of("gpt-4o").limits().len(), 3);
///
/// let error = Config::parse("quotas: {gpt-4o: {rmp: 500}}").unwrap_err();
/// assert_eq!(error.to_string().split(';').next(), Some(
///     "config:1:19: quotas.gpt-4o.rmp: unknown field \"rmp\" (did you mean `rpm`?)"
/// ));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The providers that are called; the first counts for keys that none names.
    pub providers: Vec<Profile>,
    /// The quotas, in the order of the file.
    pub quotas: Vec<ConfiguredQuota>,
    /// What happens to a key without a quota.
    pub unknown_key: UnknownKey,
    /// Who may wait for capacity, and how long.
    pub waiting: Waiting,
    /// How far a key is reduced when its provider refuses a request, and how it recovers.
    pub reduction: Reduction,
    /// Whether requests that fail in passing are sent again.
    pub retry: Retry,
    /// What is given up for the way to the provider.
    pub margin: Margin,
    /// The share of every limit that is used.
    pub share: Share,
    /// Where state is kept across restarts.
    pub store: Option<Storage>,
    /// Over which bus capacity updates are announced.
    pub bus: Option<Bus>,
    /// Limits that are shared by many machines.
    pub cluster: Option<Cluster>,
    /// The values of registered sections; see [`section`](Self::section).
    pub(super) sections: SectionValues,
}

impl Config {
    /// The configuration that this text of YAML says; relative paths in it stay as they are.
    ///
    /// # Errors
    /// [`ConfigError`], with the line, the column and the path of each value that is wrong. The text
    /// is called `config` in it.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(text, &Sections::new())
    }

    /// Parses a text of YAML that may also have these sections.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(text: &str, sections: &Sections) -> Result<Self, ConfigError> {
        let mut layers = Layers::new(sections.clone());
        layers.text(text, &Source::File("config".into()));
        layers.load(Path::new("")).map(|loaded| loaded.config)
    }

    /// Returns the value of a section, or its default if the configuration doesn't have the section.
    /// `None` if the section was not [registered](super::section::Sections) when the configuration was read.
    pub fn section<S: Section>(&self) -> Option<&S> {
        self.sections.get(S::NAME)?.downcast_ref()
    }
}
