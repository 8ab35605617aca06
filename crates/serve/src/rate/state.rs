use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::denied::Denied;
use super::grants::Grants;
use super::limits::Table;
use crate::config::Serve;
use tollgate::limiter::{KeyBudget, Limiter};

/// What the rate-limit service keeps.
#[derive(Debug)]
pub(crate) struct Rate {
    /// For requests of `/rate`, whose new keys have a bound of their own.
    pub(super) limiter: Limiter,
    table: RwLock<Arc<Table>>,
    changed: watch::Sender<()>,
    pub(super) grants: Grants,
    pub(super) denied: Denied,
}

impl Rate {
    pub(crate) fn new(serve: &Serve, limiter: &Limiter) -> Self {
        Self {
            limiter: limiter.with_key_budget(KeyBudget::new(serve.bounds.rate_keys)),
            table: RwLock::new(Arc::new(Table::new(serve, limiter))),
            changed: watch::Sender::new(()),
            grants: Grants::new(serve.bounds.reservations),
            denied: Denied::default(),
        }
    }

    /// Goes on by another configuration; who waits is looked at again.
    pub(crate) fn follow(&self, serve: &Serve, limiter: &Limiter) {
        let table = Table::new(serve, limiter);
        if !self.table().is_same(&table) {
            *self.table.write() = Arc::new(table);
            self.changed.send_replace(());
        }
    }

    /// The limits of keys that no quota names.
    pub(super) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read())
    }

    /// Tells when the limits change.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}
