use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::denial_counts::DenialCounts;
use super::grants::Grants;
use super::limit_table::LimitTable;
use crate::config::Serve;
use paceline::limiter::{KeyBudget, Limiter};

/// The state of the rate-limit service.
#[derive(Debug)]
pub(crate) struct RateService {
    /// The limiter with the key budget of `/rate`.
    pub(super) limiter: Limiter,
    table: RwLock<Arc<LimitTable>>,
    changed: watch::Sender<()>,
    pub(super) grants: Grants,
    pub(super) denied: DenialCounts,
}

impl RateService {
    pub(crate) fn new(serve: &Serve, limiter: &Limiter) -> Self {
        Self {
            limiter: limiter.with_key_budget(KeyBudget::new(serve.bounds.rate_keys)),
            table: RwLock::new(Arc::new(LimitTable::new(serve, limiter))),
            changed: watch::Sender::new(()),
            grants: Grants::new(serve.bounds.reservations, serve.reservation_ttl),
            denied: DenialCounts::default(),
        }
    }

    /// Applies another configuration, and re-evaluates waiting requests if the limits changed.
    pub(crate) fn apply(&self, serve: &Serve, limiter: &Limiter) {
        let table = LimitTable::new(serve, limiter);
        if !self.table().is_equivalent(&table) {
            *self.table.write() = Arc::new(table);
            self.changed.send_replace(());
        }
    }

    /// Returns the limits of keys without a quota.
    pub(super) fn table(&self) -> Arc<LimitTable> {
        Arc::clone(&self.table.read())
    }

    /// Returns a receiver that is notified when the limits change.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}
