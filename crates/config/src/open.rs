use std::path::Path;
use std::sync::Arc;

use paceline::middleware::{Http, RateLimitLayer, Retries};
use paceline_limiter::limiter::{Builder, Limiter, UnknownKey};
use paceline_limiter::seam;
use paceline_store::{Persistence, Sqlite, Yaml};

use crate::config::Config;
use crate::load::{LoadOptions, Loaded, load};
use crate::open_error::OpenError;
use crate::reloader::Reloader;
use crate::value::{StoreConfig, StoreFile};

/// Creates a limiter from a configuration file, with its store, its bus and its cluster. Usage of earlier
/// runs is restored from the store. Changes of the file apply within a second. The environment
/// (`PACELINE_*`) takes precedence over the file.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("paceline.yaml");
/// std::fs::write(&path, "quotas: {gpt-4o: {rpm: 500}}\nstore: {yaml: state.yaml}")?;
/// let opened = paceline_config::open(&path)?;
/// assert_eq!(opened.limiter.quotas().of("gpt-4o").limits().len(), 1);
/// let layer = opened.layer();
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`OpenError`] for an invalid file, a store that can't be opened, and a configuration that
/// doesn't limit anything.
pub fn open(path: impl AsRef<Path>) -> Result<Opened, OpenError> {
    load(&LoadOptions::from_environment().with_path(path.as_ref()))?.open()
}

/// A limiter with the store, the bus and the cluster of a configuration, and the settings of its layers. Changes of the
/// file apply to the limiter and to the prices of its layers while the limiter exists.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Opened {
    /// The limiter.
    pub limiter: Limiter,
    /// The configuration, as it was when it was opened; its `prices` follow the file.
    pub config: Config,
}

impl Opened {
    /// Returns a [layer](Config::layer) of the limiter for a client.
    #[must_use]
    pub fn layer(&self) -> RateLimitLayer<Http, Http, Retries> {
        self.config.layer(&self.limiter)
    }
}

impl Loaded {
    /// Creates a limiter with the store, the bus and the cluster of this configuration, and applies later
    /// changes of the file.
    ///
    /// # Errors
    /// Returns [`OpenError`] in the cases of [`Config::limiter`].
    pub fn open(&self) -> Result<Opened, OpenError> {
        let (limiter, config) = (self.config.limiter()?, self.config.clone());
        let reloading = Reloader::start(self, &limiter).map_err(OpenError::Watch)?;
        seam::attach(&limiter, Arc::new(reloading));
        Ok(Opened { limiter, config })
    }
}

impl Config {
    /// Creates a limiter with the store, the bus and the cluster of this configuration, which are closed
    /// together with it. Later changes of the file don't apply.
    ///
    /// With both a store and a cluster, the store keeps quotas and cool-downs, and the cluster keeps usage.
    ///
    /// # Errors
    /// Returns [`OpenError`] for a store that can't be opened, and for a configuration that doesn't limit anything. An
    /// unreachable server is not an error: connecting is retried until it responds.
    pub fn limiter(&self) -> Result<Limiter, OpenError> {
        let limiter = self.open(self.builder())?;
        match self.is_unlimited(&limiter) {
            true => Err(OpenError::NoLimits),
            false => Ok(limiter),
        }
    }

    /// Builds a limiter and attaches the store, the bus and the cluster of this configuration. `builder`
    /// is [`builder`](Self::builder) with additions. Unlike [`limiter`](Self::limiter), this accepts a
    /// limiter without any limits.
    ///
    /// # Errors
    /// Returns [`OpenError`] in the cases of [`limiter`](Self::limiter), except [`OpenError::NoLimits`].
    pub fn open(&self, builder: Builder) -> Result<Limiter, OpenError> {
        let limiter = match self.backend()? {
            Some(backend) => builder.backend(backend).build()?,
            None => builder.build()?,
        };
        self.keep(&limiter)?;
        self.join(&limiter)?;
        self.warn_of_lost_totals();
        Ok(limiter)
    }

    /// Warns if the usage of limits that never reset ends with the process.
    fn warn_of_lost_totals(&self) {
        let totals = self.quotas.iter().filter(|quota| quota.quota.has_total());
        let totals: Vec<_> = totals.map(|quota| quota.keys.name()).collect();
        let of_unknown = matches!(&self.unknown_key, UnknownKey::Quota(quota) if quota.has_total());
        if self.store.is_none() && (of_unknown || !totals.is_empty()) {
            tracing::warn!(
                quotas = ?totals,
                "the usage of limits that never reset is lost when this process ends; set a `store`"
            );
        }
    }

    /// Attaches the store of this configuration to a limiter, if there is one.
    ///
    /// # Errors
    /// Returns [`OpenError`] if the store can't be opened. The limiter then has no store.
    pub fn keep(&self, limiter: &Limiter) -> Result<Option<Persistence>, OpenError> {
        self.store.as_ref().map(|storage| storage.keep(limiter)).transpose()
    }
}

impl StoreConfig {
    /// Attaches this store to a limiter.
    ///
    /// # Errors
    /// Returns [`OpenError`] in the cases of [`Config::keep`].
    pub fn keep(&self, limiter: &Limiter) -> Result<Persistence, OpenError> {
        Ok(match &self.file {
            StoreFile::Yaml(path) => Persistence::start(limiter, Yaml::new(path), self.flush)?,
            StoreFile::Sqlite(path) => Persistence::start(limiter, Sqlite::new(path), self.flush)?,
        })
    }
}
