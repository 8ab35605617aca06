use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::limiter::{Clock, SystemClock};

use super::error::SharedError;
use super::settings::Settings;
use super::shared::Shared;
use super::url::Server;
use crate::OnFailure;
use crate::SharingMode;
use crate::Tls;

/// A builder for [`Shared`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct SharedBuilder {
    url: String,
    account: String,
    settings: Settings,
    clock: Option<Arc<dyn Clock>>,
}

impl Shared {
    /// Returns a builder for the limits of an account, in the store at this URL.
    pub fn builder(url: impl AsRef<str>, account: impl AsRef<str>) -> SharedBuilder {
        SharedBuilder {
            url: url.as_ref().to_owned(),
            account: account.as_ref().to_owned(),
            settings: Settings::default(),
            clock: None,
        }
    }
}

impl SharedBuilder {
    /// Sets the maximum time that a decision waits for the store. Default: 50 ms; at least 1 ms.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// Sets how requests are decided while the store is unavailable. Default:
    /// [`OnFailure::LocalShare`].
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.settings.on_failure = on_failure;
        self
    }

    /// Sets how exactly the limits are enforced. Default: [`SharingMode::Exact`].
    pub fn mode(mut self, mode: SharingMode) -> Self {
        self.settings.mode = mode;
        self
    }

    /// Spreads the keys of the account over the nodes of a Redis Cluster.
    ///
    /// A request under several keys is then reserved key by key, in their order. If a key refuses
    /// it, the earlier keys are released; until then, other processes see their amounts as held.
    pub fn spread(mut self) -> Self {
        self.settings.spread = true;
        self
    }

    /// Sets the time after which a reservation counts as used if its process has ended and no longer
    /// renews it. Default: one minute; at least 1 s.
    pub fn reservation_ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl.max(Duration::from_secs(1));
        self
    }

    /// Sets the duration of a lease in [`SharingMode::Lease`]. Default: 2 s; at least 100 ms.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// Sets the certificates of TLS connections. Default: those of the system.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.settings.tls = tls;
        self
    }

    /// Sets the clock, which must be the limiter's. Default: the system clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Starts the thread that maintains the connection. An unreachable store is not an error: it
    /// counts as unavailable until it can be reached.
    ///
    /// # Errors
    /// Returns [`SharedError`] for an invalid URL, an empty account, or unusable certificate files.
    pub fn connect(self) -> Result<Arc<Shared>, SharedError> {
        let server = Server::parse(&self.url)?;
        if self.account.is_empty() {
            return Err(SharedError::NoAccount);
        }
        self.settings.tls.config().map_err(SharedError::Tls)?;
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        Shared::start(server, &self.account, self.settings, clock).map(Arc::new)
    }
}

impl fmt::Debug for SharedBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuilder")
            .field("account", &self.account)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
