//! The section `serve` of the configuration file.

mod check;
mod fields;
mod value;

use std::path::Path;

pub use fields::{LogFormat, LogLevel, ServeMode, UnreadRequests};
pub(crate) use value::API_KEY;
pub use value::{Bounds, KeyLimit, KeySource, Log, Serve, Upstream};

use super::error::ServeError;
use paceline::limiter::Limiter;
use paceline_config::section::Sections;
use paceline_config::{Config, ConfigError, LoadOptions};

/// Returns the configuration sections of a server in addition to those of the library: the section
/// `serve`.
///
/// ```
/// use paceline_config::{self as config, LoadOptions};
/// use paceline_serve::Serve;
///
/// let loaded = config::load(&LoadOptions::new().with_sections(paceline_serve::sections()))?;
/// assert_eq!(Serve::of(&loaded.config)?.listen.to_string(), "127.0.0.1:8080");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sections() -> Sections {
    Sections::new().with::<Serve>()
}

/// Parses the configuration of a server from YAML, like [`Config::parse`] with the section `serve`.
///
/// # Errors
/// Returns the errors of [`Config::parse`].
pub fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse_with(text, &sections())
}

/// Builds the limiter of a server. Unlike [`Config::limiter`], it allows a configuration without quotas,
/// holds at most `serve.bounds.keys` keys, and adds the providers of the upstreams after those of
/// `providers`.
///
/// # Errors
/// Returns [`ServeError::MissingSection`] if the configuration was loaded without [`sections`], and
/// [`ServeError::Open`] for the errors of [`Config::limiter`].
pub fn limiter(config: &Config) -> Result<Limiter, ServeError> {
    let serve = Serve::of(config)?;
    let mut builder = config.builder().max_keys(serve.bounds.keys);
    let mut known = config.providers.clone();
    for upstream in &serve.upstreams {
        if !known.contains(&upstream.profile) {
            known.push(upstream.profile);
            builder = builder.provider(upstream.profile);
        }
    }
    Ok(config.open(builder)?)
}

/// Adds a file in the format of GoCC (JSON or YAML) whose `keys` replace `serve.keys`.
pub fn with_keys_file(options: LoadOptions, path: impl AsRef<Path>) -> LoadOptions {
    options.with_list_file(path.as_ref(), "keys", &["serve", "keys"])
}

impl Serve {
    /// Returns the section `serve` of a configuration.
    ///
    /// # Errors
    /// Returns [`ServeError::MissingSection`] if the configuration was loaded without [`sections`].
    pub fn of(config: &Config) -> Result<&Self, ServeError> {
        config.section().ok_or(ServeError::MissingSection)
    }
}
