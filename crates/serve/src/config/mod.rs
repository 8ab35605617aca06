//! The section `serve` of the configuration.

mod check;
mod fields;
mod value;

use std::path::Path;

pub use fields::{LogFormat, LogLevel, ServeMode, UnreadRequests};
pub use value::{Bounds, KeyLimit, Log, Scope, Serve, Upstream};

use super::error::ServeError;
use tollgate::config::section::Sections;
use tollgate::config::{Config, ConfigError, LoadOptions};
use tollgate::limiter::Limiter;

/// The sections that a configuration of a server has besides those of the library: `serve`.
///
/// ```
/// use tollgate::config::{self, LoadOptions};
/// use tollgate_serve::{self, Serve};
///
/// let loaded = config::load(&LoadOptions::new().with_sections(serve::sections()))?;
/// assert_eq!(Serve::of(&loaded.config)?.listen.to_string(), "127.0.0.1:8080");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sections() -> Sections {
    Sections::new().with::<Serve>()
}

/// The configuration of a server that this text of YAML says: [`Config::parse`] with `serve`.
///
/// # Errors
/// As [`Config::parse`].
pub fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse_with(text, &sections())
}

/// The limiter of a server of this configuration: one that may limit nothing but what its clients ask
/// for, keeps as many keys as the server does, and knows the providers of its upstreams behind those of
/// `providers`.
///
/// # Errors
/// [`ServeError::Unread`], and [`ServeError::Open`] as [`Config::limiter`].
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

/// The same options with a file of GoCC's, JSON or YAML, whose `keys` stand in place of `serve.keys`.
pub fn with_keys_file(options: LoadOptions, path: impl AsRef<Path>) -> LoadOptions {
    options.with_list_file(path.as_ref(), "keys", &["serve", "keys"])
}

impl Serve {
    /// What a configuration says of `serve`.
    ///
    /// # Errors
    /// [`ServeError::Unread`]
    pub fn of(config: &Config) -> Result<&Self, ServeError> {
        config.section().ok_or(ServeError::Unread)
    }
}
