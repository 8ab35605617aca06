use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::failure::Failure;
use super::link::Link;
use crate::timestamp::Timestamp;

/// The way to the store: its connection, or since when there is none.
#[derive(Debug)]
pub(super) struct StoreConnection {
    state: watch::Sender<ConnectionState>,
    /// Tells who keeps the connection that something is wrong with it.
    pub(super) check_requested: Notify,
}

#[derive(Debug, Clone, Default)]
struct ConnectionState {
    link: Option<Link>,
    /// How many connections there have been.
    number: u64,
    outage: Option<Outage>,
}

/// The store can't be asked.
#[derive(Debug, Clone)]
pub(super) struct Outage {
    pub(super) since: Timestamp,
    pub(super) reason: Arc<str>,
}

impl StoreConnection {
    pub(super) fn new() -> Self {
        Self {
            state: watch::Sender::new(ConnectionState::default()),
            check_requested: Notify::new(),
        }
    }

    pub(super) fn outage(&self) -> Option<Outage> {
        self.state.borrow().outage.clone()
    }

    pub(super) fn is_unavailable(&self) -> bool {
        self.state.borrow().outage.is_some()
    }

    pub(super) fn is_available(&self) -> bool {
        let state = self.state.borrow();
        state.outage.is_none() && state.link.is_some()
    }

    pub(super) fn has_link(&self) -> bool {
        self.state.borrow().link.is_some()
    }

    /// The connection and its number, once it stands; for who tests it, also while the store is away.
    pub(super) async fn link(&self, while_away: bool) -> Result<(Link, u64), Failure> {
        let mut states = self.state.subscribe();
        let is_settled = |state: &ConnectionState| {
            state.link.is_some() || (state.outage.is_some() && !while_away)
        };
        let state = states.wait_for(is_settled).await.map_err(|_| Failure::Unavailable)?;
        match (&state.link, &state.outage) {
            (Some(link), None) => Ok((link.clone(), state.number)),
            (Some(link), Some(_)) if while_away => Ok((link.clone(), state.number)),
            _ => Err(Failure::Unavailable),
        }
    }

    /// Waits until the store can be asked.
    pub(super) async fn wait_until_available(&self) {
        let is_available = |state: &ConnectionState| state.outage.is_none() && state.link.is_some();
        // Fails only where the way itself is gone.
        let _ = self.state.subscribe().wait_for(is_available).await;
    }

    pub(super) fn set_link(&self, link: Link) {
        self.state.send_modify(|state| {
            state.link = Some(link);
            state.number += 1;
        });
    }

    /// This connection is of no use any more.
    pub(super) fn drop_link(&self, number: u64) {
        let ended = self.state.send_if_modified(|state| {
            let current = state.number == number && state.link.is_some();
            if current {
                state.link = None;
            }
            current
        });
        if ended {
            self.check_requested.notify_one();
        }
    }

    /// The store can't be asked any more. Whether it could, before.
    pub(super) fn mark_unavailable(&self, since: Timestamp, reason: &str) -> bool {
        let lost = self.state.send_if_modified(|state| {
            let is_available = state.outage.is_none();
            if is_available {
                state.outage = Some(Outage { since, reason: reason.into() });
            }
            is_available
        });
        self.check_requested.notify_one();
        lost
    }

    /// It can be asked again: how it was away, if it was.
    pub(super) fn mark_available(&self) -> Option<Outage> {
        let mut outage = None;
        self.state.send_if_modified(|state| {
            outage = state.outage.take();
            outage.is_some()
        });
        outage
    }
}
