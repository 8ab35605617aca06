use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::config::Config;
use super::error::ConfigError;
use super::load::{LoadOptions, Loaded, load};
use super::reloading::Reloading;
use super::value::{Storage, StoragePlace};
#[cfg(any(feature = "nats", feature = "redis"))]
use crate::cluster::BusError;
use crate::cluster::NoAgentId;
#[cfg(feature = "redis")]
use crate::cluster::SharedError;
use crate::limiter::{BuildError, Builder, Limiter, QuotaOrigin, UnknownKey};
use crate::store::{Persistence, StoreError, Yaml};

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
    /// assert_eq!(limiter.quotas().of("gpt-4o").limits().len(), 1);
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
    /// A limiter of this configuration, with its store, its bus and its cluster, that follows the file
    /// from now on.
    ///
    /// # Errors
    /// As [`Config::limiter`].
    pub fn limiter(&self) -> Result<Limiter, OpenError> {
        let limiter = self.config.limiter()?;
        let reloading = Reloading::start(self, &limiter).map_err(OpenError::Watch)?;
        limiter.state().attach(Arc::new(reloading));
        Ok(limiter)
    }
}

impl Config {
    /// A limiter of this configuration, with its store, its bus and its cluster, which end with it. It
    /// doesn't follow the file.
    ///
    /// With a store and a cluster, the store keeps quotas and cool-downs, and the cluster what was used.
    ///
    /// # Errors
    /// [`OpenError`] for a store that can't be opened, for what needs a feature that this program is
    /// built without, and where nothing would be limited. Servers that can't be reached are none: they
    /// are away, until they come.
    pub fn limiter(&self) -> Result<Limiter, OpenError> {
        let limiter = self.open(self.builder())?;
        match self.limits_nothing(&limiter) {
            true => Err(OpenError::NoLimits),
            false => Ok(limiter),
        }
    }

    /// Builds a limiter and attaches the store, the bus and the cluster of this configuration. `builder`
    /// is [`builder`](Self::builder) with additions. Unlike [`limiter`](Self::limiter), this accepts a
    /// limiter without any limits.
    ///
    /// # Errors
    /// As [`limiter`](Self::limiter), but for [`OpenError::NoLimits`].
    pub fn open(&self, builder: Builder) -> Result<Limiter, OpenError> {
        let limiter = match self.backend()? {
            Some(backend) => builder.backend(backend).build()?,
            None => builder.build()?,
        };
        self.keep(&limiter)?;
        self.join(&limiter)?;
        Ok(limiter)
    }

    /// Whether nothing is limited by a limiter that is brought to this configuration.
    pub(super) fn limits_nothing(&self, limiter: &Limiter) -> bool {
        let allows_all = self.providers.is_empty() && self.unknown_key == UnknownKey::Allow;
        let others = || {
            limiter.quotas().list().into_iter().any(|quota| quota.origin != QuotaOrigin::Configured)
        };
        allows_all && self.quotas.is_empty() && !others()
    }

    /// Keeps a limiter in the store of this configuration, if there is one.
    ///
    /// # Errors
    /// [`OpenError`] for a store that can't be opened; the limiter isn't kept then.
    pub fn keep(&self, limiter: &Limiter) -> Result<Option<Persistence>, OpenError> {
        self.store.as_ref().map(|storage| storage.keep(limiter)).transpose()
    }
}

impl Storage {
    /// Keeps a limiter there.
    ///
    /// # Errors
    /// As [`Config::keep`].
    pub fn keep(&self, limiter: &Limiter) -> Result<Persistence, OpenError> {
        Ok(match &self.place {
            StoragePlace::Yaml(path) => Persistence::start(limiter, Yaml::new(path), self.flush)?,
            #[cfg(feature = "sqlite")]
            StoragePlace::Sqlite(path) => {
                Persistence::start(limiter, crate::store::Sqlite::new(path), self.flush)?
            }
            #[cfg(not(feature = "sqlite"))]
            StoragePlace::Sqlite(_) => {
                return Err(OpenError::NoFeature { path: "store.sqlite", feature: "sqlite" });
            }
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
    /// A store or a server of a kind that this program is built without.
    NoFeature {
        /// Where the configuration names it, as `store.sqlite`.
        path: &'static str,
        /// The feature of this crate that it needs.
        feature: &'static str,
    },
    /// The bus can't be used.
    #[cfg(any(feature = "nats", feature = "redis"))]
    Bus(BusError),
    /// The name on the bus is none.
    AgentId(NoAgentId),
    /// The limits can't be shared.
    #[cfg(feature = "redis")]
    Shared(SharedError),
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
            Self::NoFeature { path, feature } => write!(
                f,
                "{path} needs the feature `{feature}`, which this program is built without"
            ),
            #[cfg(any(feature = "nats", feature = "redis"))]
            Self::Bus(error) => write!(f, "bus: {error}"),
            Self::AgentId(error) => write!(f, "bus.agent_id: {error}"),
            #[cfg(feature = "redis")]
            Self::Shared(error) => write!(f, "cluster.redis: {error}"),
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
            Self::NoFeature { .. } | Self::NoLimits => None,
            #[cfg(any(feature = "nats", feature = "redis"))]
            Self::Bus(error) => Some(error),
            Self::AgentId(error) => Some(error),
            #[cfg(feature = "redis")]
            Self::Shared(error) => Some(error),
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

#[cfg(any(feature = "nats", feature = "redis"))]
impl From<BusError> for OpenError {
    fn from(error: BusError) -> Self {
        Self::Bus(error)
    }
}

impl From<NoAgentId> for OpenError {
    fn from(error: NoAgentId) -> Self {
        Self::AgentId(error)
    }
}

#[cfg(feature = "redis")]
impl From<SharedError> for OpenError {
    fn from(error: SharedError) -> Self {
        Self::Shared(error)
    }
}

/// What is wrong with a configuration that limits nothing.
pub(super) const NO_LIMITS: &str =
    "nothing would be limited; give `providers`, `quotas` or `unknown_key`";
