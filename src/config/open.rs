use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::config::Config;
use super::error::ConfigError;
use super::load::{LoadOptions, Loaded, load};
use super::reloading::Reloading;
use super::value::{Storage, StoragePlace};
use crate::limiter::{BuildError, Limiter, QuotaOrigin, UnknownKey};
use crate::store::{Keeping, StoreError, Yaml};

/// Limiters out of a configuration, with all that belongs to them.
impl Limiter {
    /// A limiter that follows this file, kept in the store that it names: what was used in an earlier
    /// run stays used, and a change of the file is seen within a second. The environment
    /// (`TOLLGATE_*`) goes over the file.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::Limiter;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("tollgate.yaml");
    /// std::fs::write(&path, "quotas: {gpt-4o: {rpm: 500}}\nstore: {yaml: state.yaml}")?;
    /// let limiter = Limiter::from_config(&path)?;
    /// assert_eq!(limiter.quota("gpt-4o").limits().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`OpenError`] for a file that can't be used, a store that can't be opened, and where nothing
    /// would be limited.
    pub fn from_config(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let loaded = load(&LoadOptions::from_environment().with_path(path.as_ref()))?;
        loaded.limiter()
    }
}

impl Loaded {
    /// A limiter of this configuration, kept in its store, that follows the file from now on.
    ///
    /// # Errors
    /// [`OpenError`] for a store that can't be opened, and where nothing would be limited.
    pub fn limiter(&self) -> Result<Limiter, OpenError> {
        let limiter = self.config.limiter()?;
        let reloading = Reloading::start(self, &limiter).map_err(OpenError::Watch)?;
        limiter.attach(Arc::new(reloading));
        Ok(limiter)
    }
}

impl Config {
    /// A limiter of this configuration, kept in its store. It doesn't follow the file.
    ///
    /// # Errors
    /// [`OpenError`] for a store that can't be opened, and where nothing would be limited.
    pub fn limiter(&self) -> Result<Limiter, OpenError> {
        let limiter = self.builder().build()?;
        if self.bus.is_some() || self.cluster.is_some() {
            tracing::warn!(
                "bus and cluster aren't used yet; the limits are kept by this process alone"
            );
        }
        self.keep(&limiter)?;
        match self.limits_nothing(&limiter) {
            true => Err(OpenError::NoLimits),
            false => Ok(limiter),
        }
    }

    /// Whether nothing is limited by a limiter that is brought to this configuration.
    pub(super) fn limits_nothing(&self, limiter: &Limiter) -> bool {
        let allows_all = self.providers.is_empty() && self.unknown_key == UnknownKey::Allow;
        let others =
            || limiter.quotas().into_iter().any(|quota| quota.origin != QuotaOrigin::Configured);
        allows_all && self.quotas.is_empty() && !others()
    }

    /// Keeps a limiter in the store of this configuration, if there is one.
    ///
    /// # Errors
    /// [`OpenError`] for a store that can't be opened; the limiter isn't kept then.
    pub fn keep(&self, limiter: &Limiter) -> Result<Option<Keeping>, OpenError> {
        self.store.as_ref().map(|storage| storage.keep(limiter)).transpose()
    }
}

impl Storage {
    /// Keeps a limiter there.
    ///
    /// # Errors
    /// As [`Config::keep`].
    pub fn keep(&self, limiter: &Limiter) -> Result<Keeping, OpenError> {
        Ok(match &self.place {
            StoragePlace::Yaml(path) => Keeping::start(limiter, Yaml::new(path), self.flush)?,
            #[cfg(feature = "sqlite")]
            StoragePlace::Sqlite(path) => {
                Keeping::start(limiter, crate::store::Sqlite::new(path), self.flush)?
            }
            #[cfg(not(feature = "sqlite"))]
            StoragePlace::Sqlite(_) => return Err(OpenError::NoSqlite),
        })
    }
}

/// A limiter that can't be made of a configuration.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration can't be used.
    Config(ConfigError),
    /// The limiter can't be built.
    Build(BuildError),
    /// The store can't be opened.
    Store(StoreError),
    /// The store is a SQLite database, and this program is built without the feature `sqlite`.
    NoSqlite,
    /// No provider is named, no quota is configured or kept, and unknown keys are allowed.
    NoLimits,
    /// The file can't be followed.
    Watch(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::NoSqlite => f.write_str(
                "store.sqlite needs the feature `sqlite`; build with it, or use store.yaml",
            ),
            Self::NoLimits => f.write_str(NO_LIMITS),
            Self::Watch(error) => write!(f, "the configuration can't be followed: {error}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Build(error) => Some(error),
            Self::Store(error) => Some(error),
            Self::NoSqlite | Self::NoLimits => None,
            Self::Watch(error) => Some(error),
        }
    }
}

impl From<ConfigError> for OpenError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<BuildError> for OpenError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What is wrong with a configuration that limits nothing.
pub(super) const NO_LIMITS: &str =
    "nothing would be limited; give `providers`, `quotas` or `unknown_key`";
