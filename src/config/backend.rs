use std::sync::Arc;

use super::config::Config;
use super::open::OpenError;
use super::value::Cluster;
#[cfg(feature = "redis")]
use super::{Mode, OnFailure};
#[cfg(feature = "redis")]
use crate::cluster::{self, Shared, SharedError};
use crate::limiter::Backend;

impl Config {
    /// Where the limits of `cluster` are kept, for a [builder](Self::builder); `None` if there is no
    /// such section. It ends with the limiter.
    ///
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tollgate::config::Config;
    /// let config = Config::parse("
    /// quotas: {gpt-4o: {rpm: 500}}
    /// cluster: {redis: 'redis://127.0.0.1:6379', account: team-a}
    /// ")?;
    /// let mut builder = config.builder().max_keys(1_000);
    /// if let Some(backend) = config.backend()? {
    ///     builder = builder.backend(backend);
    /// }
    /// let limiter = builder.build()?;
    /// # drop(limiter);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "redis"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// [`OpenError`] if this program is built without the feature `redis`, or has no thread left. A
    /// server that can't be reached is none: it is away, until it comes.
    pub fn backend(&self) -> Result<Option<Arc<dyn Backend>>, OpenError> {
        self.cluster.as_ref().map(Cluster::backend).transpose()
    }
}

impl Cluster {
    #[cfg(feature = "redis")]
    fn backend(&self) -> Result<Arc<dyn Backend>, OpenError> {
        Ok(self.connect()?)
    }

    #[cfg(not(feature = "redis"))]
    fn backend(&self) -> Result<Arc<dyn Backend>, OpenError> {
        Err(OpenError::NoFeature { path: "cluster.redis", feature: "redis" })
    }

    /// The limits that are kept there, for a [builder](Config::builder).
    ///
    /// # Errors
    /// [`SharedError`] if there is no thread left.
    #[cfg(feature = "redis")]
    pub fn connect(&self) -> Result<Arc<Shared>, SharedError> {
        let mode = match self.mode {
            Mode::Exact => cluster::Mode::Exact,
            Mode::Lease => cluster::Mode::Lease,
        };
        let on_failure = match self.on_failure {
            OnFailure::Closed => cluster::OnFailure::Closed,
            OnFailure::Open => cluster::OnFailure::Open,
            OnFailure::LocalShare => cluster::OnFailure::LocalShare,
        };
        let builder = Shared::builder(self.redis.expose(), &self.account)
            .mode(mode)
            .on_failure(on_failure)
            .timeout(self.timeout)
            .lease(self.lease)
            .reservation_ttl(self.reservation_ttl);
        let builder = if self.spread { builder.spread() } else { builder };
        builder.connect()
    }
}
