use std::sync::Arc;

use super::config::Config;
use super::open::OpenError;
use super::value::ClusterConfig;
#[cfg(feature = "redis")]
use crate::cluster::{Shared, SharedError};
use crate::limiter::Backend;

impl Config {
    /// Connects to the shared limits of the section `cluster`, for a [builder](Self::builder). Returns
    /// `None` if there is no such section. The shared limits are closed together with the limiter.
    ///
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use paceline::config::Config;
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
    /// Returns [`OpenError`] if this program is built without the feature `redis`, or the system can't
    /// start a thread. An unreachable server is not an error: connecting is retried until it responds.
    pub fn backend(&self) -> Result<Option<Arc<dyn Backend>>, OpenError> {
        self.cluster.as_ref().map(ClusterConfig::backend).transpose()
    }
}

impl ClusterConfig {
    #[cfg(feature = "redis")]
    fn backend(&self) -> Result<Arc<dyn Backend>, OpenError> {
        Ok(self.connect()?)
    }

    #[cfg(not(feature = "redis"))]
    fn backend(&self) -> Result<Arc<dyn Backend>, OpenError> {
        Err(OpenError::NoFeature { path: "cluster.redis", feature: "redis" })
    }

    /// Connects to the shared limits, for a [builder](Config::builder).
    ///
    /// # Errors
    /// Returns [`SharedError`] if the system can't start a thread, or for unusable certificate files.
    #[cfg(feature = "redis")]
    pub fn connect(&self) -> Result<Arc<Shared>, SharedError> {
        let builder = Shared::builder(self.redis.expose(), &self.account)
            .mode(self.mode)
            .on_failure(self.on_failure)
            .timeout(self.timeout)
            .lease(self.lease)
            .reservation_ttl(self.reservation_ttl)
            .tls(self.tls.certificates());
        let builder = if self.spread { builder.spread() } else { builder };
        builder.connect()
    }
}
