use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::error::SharedError;
use super::shared::Shared;
use super::url::Server;
use crate::cluster::OnFailure;
use crate::cluster::SharingMode;
use crate::limiter::{Clock, SystemClock};

/// Builds a [`Shared`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct SharedBuilder {
    url: String,
    account: String,
    settings: Settings,
    clock: Option<Arc<dyn Clock>>,
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) timeout: Duration,
    pub(super) on_failure: OnFailure,
    pub(super) mode: SharingMode,
    pub(super) spread: bool,
    pub(super) ttl: Duration,
    pub(super) lease: Duration,
}

impl SharedBuilder {
    pub(super) fn new(url: &str, account: &str) -> Self {
        let settings = Settings {
            timeout: Duration::from_millis(50),
            on_failure: OnFailure::default(),
            mode: SharingMode::default(),
            spread: false,
            ttl: Duration::from_secs(60),
            lease: Duration::from_secs(2),
        };
        Self { url: url.to_owned(), account: account.to_owned(), settings, clock: None }
    }

    /// How long a decision waits for the store; by default, 50 ms. At least 1 ms.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// What happens while the store can't be reached; by default, [`OnFailure::LocalShare`].
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.settings.on_failure = on_failure;
        self
    }

    /// How exactly the limits are kept; by default, [`SharingMode::Exact`].
    pub fn mode(mut self, mode: SharingMode) -> Self {
        self.settings.mode = mode;
        self
    }

    /// The keys of the account may lie on different nodes of a Redis Cluster. A request under several
    /// keys is then decided key by key, in their order, and given back where a later one refuses:
    /// for that moment, others see it as held.
    pub fn spread(mut self) -> Self {
        self.settings.spread = true;
        self
    }

    /// How long the reservation of a request is kept that nobody renews, because its process is gone;
    /// by default, a minute. Then it counts as used. At least 1 s.
    pub fn reservation_ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl.max(Duration::from_secs(1));
        self
    }

    /// In [`SharingMode::Lease`], for how long a process holds its part; by default, 2 s. At least 100 ms.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// The clock of the limiter that uses it; by default, the system's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Starts the thread that keeps the connection. That the store isn't there is no error: it is
    /// away then, and used as soon as it comes.
    ///
    /// # Errors
    /// [`SharedError`], for an address or an account that can't be meant.
    pub fn connect(self) -> Result<Arc<Shared>, SharedError> {
        let server = Server::parse(&self.url)?;
        if self.account.is_empty() {
            return Err(SharedError::NoAccount);
        }
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
