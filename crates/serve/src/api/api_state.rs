use std::sync::Arc;
use std::time::Duration;

use super::reservations::Reservations;
use super::response_cache::ResponseCache;
use crate::app::App;
use paceline::Timestamp;
use paceline::limiter::{KeyBudget, Limiter};

/// The state of the JSON API.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) app: Arc<App>,
    /// The limiter with the key budget of `/v1`.
    limiter: Limiter,
    pub(super) reservations: Arc<Reservations>,
    /// Stored responses to clients.
    pub(super) responses: Arc<ResponseCache>,
    /// Stored responses to admins, so that clients cannot evict them.
    pub(super) admin_responses: Arc<ResponseCache>,
}

impl Api {
    /// Creates the state, and starts the tasks that expire reservations and stored responses.
    pub(super) fn start(app: &Arc<App>) -> Arc<Self> {
        let min_age = app.serve.reservation_ttl;
        let reservations = Arc::clone(&app.reservations);
        tokio::spawn(Arc::clone(&reservations).run(app.limiter.clone()));
        let responses = |bytes| {
            let responses = Arc::new(ResponseCache::new(min_age, bytes));
            let (limiter, stopping) = (app.limiter.clone(), app.stopping.clone());
            tokio::spawn(ResponseCache::run(Arc::downgrade(&responses), limiter, stopping));
            responses
        };
        Arc::new(Self {
            app: Arc::clone(app),
            limiter: app.limiter.with_key_budget(KeyBudget::new(app.serve.bounds.api_keys)),
            reservations,
            responses: responses(MAX_BYTES),
            admin_responses: responses(MAX_ADMIN_BYTES),
        })
    }

    pub(super) fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    pub(super) fn now(&self) -> Timestamp {
        self.app.limiter.now()
    }

    /// Returns the maximum length of a key in bytes.
    pub(super) fn max_key_length(&self) -> usize {
        self.app.serve.bounds.key
    }

    /// Returns the default lifetime of reservations.
    pub(super) fn ttl(&self) -> Duration {
        self.app.serve.reservation_ttl
    }
}

/// The sizes of the stored responses to clients and to admins, in bytes.
const MAX_BYTES: usize = 128 << 20;
const MAX_ADMIN_BYTES: usize = 8 << 20;
