use std::sync::Arc;

use paceline_cluster::{Shared, SharedError};
use paceline_limiter::limiter::Backend;

use crate::config::Config;
use crate::open_error::OpenError;
use crate::value::ClusterConfig;

impl Config {
    /// Connects to the shared limits of the section `cluster`, for a [builder](Self::builder). Returns
    /// `None` if there is no such section. The shared limits are closed together with the limiter.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use paceline_config::Config;
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
    /// ```
    ///
    /// # Errors
    /// Returns [`OpenError`] if the system can't start a thread. An unreachable server is not an error: connecting is
    /// retried until it responds.
    pub fn backend(&self) -> Result<Option<Arc<dyn Backend>>, OpenError> {
        let Some(cluster) = &self.cluster else { return Ok(None) };
        Ok(Some(cluster.connect()?))
    }
}

impl ClusterConfig {
    /// Connects to the shared limits, for a [builder](Config::builder).
    ///
    /// # Errors
    /// Returns [`SharedError`] if the system can't start a thread, or for unusable certificate files.
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
