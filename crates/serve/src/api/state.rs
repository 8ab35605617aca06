use std::sync::Arc;
use std::time::Duration;

use super::answers::Answers;
use super::reservations::Reservations;
use crate::app::App;
use tollgate::Timestamp;
use tollgate::limiter::{KeyBudget, Limiter};

/// What the routes of the JSON API share.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) app: Arc<App>,
    /// For requests of `/v1`, whose new keys have a bound of their own.
    limiter: Limiter,
    pub(super) reservations: Arc<Reservations>,
    /// Those given to clients' requests with an idempotency key.
    pub(super) answers: Arc<Answers>,
    /// Those given to admins', which clients can't crowd out.
    pub(super) admin_answers: Arc<Answers>,
}

impl Api {
    /// Starts what ends reservations at their time, until the server has ended all of them, and what
    /// forgets old answers.
    pub(super) fn start(app: &Arc<App>) -> Arc<Self> {
        let kept_for = app.serve.reservation_ttl;
        let reservations = Arc::clone(&app.reservations);
        tokio::spawn(Arc::clone(&reservations).run(app.limiter.clone()));
        let answers = |bytes| {
            let answers = Arc::new(Answers::new(kept_for, bytes));
            let (limiter, stopping) = (app.limiter.clone(), app.stopping.clone());
            tokio::spawn(Answers::run(Arc::downgrade(&answers), limiter, stopping));
            answers
        };
        Arc::new(Self {
            app: Arc::clone(app),
            limiter: app.limiter.with_key_budget(KeyBudget::new(app.serve.bounds.api_keys)),
            reservations,
            answers: answers(MOST_BYTES),
            admin_answers: answers(MOST_ADMIN_BYTES),
        })
    }

    pub(super) fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    pub(super) fn now(&self) -> Timestamp {
        self.app.limiter.now()
    }

    /// The longest key, in bytes.
    pub(super) fn longest_key(&self) -> usize {
        self.app.serve.bounds.key
    }

    /// For how long a reservation is held that doesn't say.
    pub(super) fn ttl(&self) -> Duration {
        self.app.serve.reservation_ttl
    }
}

/// What the answers that are kept for clients may take, and those for admins, in bytes.
const MOST_BYTES: usize = 128 << 20;
const MOST_ADMIN_BYTES: usize = 8 << 20;
