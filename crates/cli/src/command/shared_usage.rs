use std::sync::Arc;
use std::time::Duration;

use super::ConfigArgs;
use paceline::cluster::Shared;
use paceline::limiter::{Backend, Limiter};
use paceline_config::Loaded;

/// The store of limits that are shared with other machines.
pub(super) struct SharedUsage {
    shared: Arc<Shared>,
    /// The store and the account.
    place: String,
    /// The time that a call may take.
    timeout: Duration,
}

impl SharedUsage {
    /// Runs a command with the store of the section `cluster`, if there is one, and then leaves the set of
    /// processes that share the limits.
    ///
    /// # Errors
    /// Returns the reason why the store is unavailable, an error of the configuration, or that of the command.
    pub(super) async fn with<T>(
        config: &ConfigArgs,
        command: impl AsyncFnOnce(Option<&Self>) -> Result<T, String>,
    ) -> Result<T, String> {
        let shared = Self::connect(&config.load()?).await?;
        let result = command(shared.as_ref()).await;
        if let Some(Self { shared, .. }) = shared {
            shared.close().await;
        }
        result
    }

    async fn connect(loaded: &Loaded) -> Result<Option<Self>, String> {
        let Some(cluster) = &loaded.config.cluster else { return Ok(None) };
        let place = format!("{} for the account {}", cluster.redis, cluster.account);
        let shared = cluster.connect().map_err(|error| format!("{place}: {error}"))?;
        let usage = Self { shared, place, timeout: cluster.timeout };
        // The first attempt ends within the time to connect.
        while !usage.shared.status().connected {
            if usage.shared.outage_cause().is_some() {
                return Err(usage.unavailable());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(Some(usage))
    }

    /// Returns the backend of a limiter.
    pub(super) fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.shared) as _
    }

    /// Returns the store and the account.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Asks the store for the usage of these keys.
    ///
    /// # Errors
    /// Returns the reason if the store has never answered about one of them.
    pub(super) async fn refresh(&self, limiter: &Limiter, keys: &[&str]) -> Result<(), String> {
        limiter.state().refresh(keys).await;
        let is_unknown = |key: &&str| {
            let stats = limiter.stats(key);
            !stats.limits.is_empty() && stats.as_of.is_none()
        };
        match keys.iter().any(is_unknown) {
            true => Err(self.unavailable()),
            false => Ok(()),
        }
    }

    /// Resets the usage of a key, or of all keys that the limiter knows.
    ///
    /// # Errors
    /// Returns the reason if the store hasn't confirmed the reset.
    pub(super) async fn reset(&self, limiter: &Limiter, key: Option<&str>) -> Result<(), String> {
        match limiter.state().reset(key).await {
            true => Ok(()),
            false => Err(format!("{}; the usage may not be reset, try again", self.unavailable())),
        }
    }

    /// Returns the cause of an outage, if the store is unavailable.
    pub(super) fn outage_cause(&self) -> Option<String> {
        self.shared.outage_cause()
    }

    fn unavailable(&self) -> String {
        let cause = self.outage_cause().unwrap_or_else(|| {
            format!("no answer within {:?}; raise cluster.timeout", self.timeout)
        });
        format!("the limits shared at {} are unavailable: {cause}", self.place)
    }
}

/// The interval at which the state of a new connection is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
