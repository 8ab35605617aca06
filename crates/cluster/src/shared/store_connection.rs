//! The connection to the store, and whether the store is available.

use tokio::sync::{Notify, watch};

use super::failure::Failure;
use super::link::Link;
use super::outage::Outage;

/// The connection to the store, or the current outage.
#[derive(Debug)]
pub(super) struct StoreConnection {
    state: watch::Sender<ConnectionState>,
    /// Notifies the connection monitor to check the connection now.
    pub(super) check_requested: Notify,
}

#[derive(Debug, Default)]
struct ConnectionState {
    link: Option<Link>,
    /// The number of connections so far.
    number: u64,
    /// True once the server has the usage that the processes know, so that it can decide.
    is_ready: bool,
    outage: Option<Outage>,
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
        self.state.borrow().is_available()
    }

    pub(super) fn has_link(&self) -> bool {
        self.state.borrow().link.is_some()
    }

    /// Waits until the store can decide, and returns the connection with its number. With
    /// `even_if_unavailable`, waits for a connection only.
    ///
    /// # Errors
    /// Returns [`Failure::Unavailable`] if the store counts as unavailable, unless
    /// `even_if_unavailable`.
    pub(super) async fn link(&self, even_if_unavailable: bool) -> Result<(Link, u64), Failure> {
        let mut states = self.state.subscribe();
        let is_settled = |state: &ConnectionState| match even_if_unavailable {
            true => state.link.is_some(),
            false => state.is_available() || state.outage.is_some(),
        };
        let state = states.wait_for(is_settled).await.map_err(|_| Failure::Unavailable)?;
        match &state.link {
            Some(link) if even_if_unavailable || state.outage.is_none() => {
                Ok((link.clone(), state.number))
            }
            _ => Err(Failure::Unavailable),
        }
    }

    /// Waits until the store is available.
    pub(super) async fn wait_until_available(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.state.subscribe().wait_for(ConnectionState::is_available).await;
    }

    /// Sets a new connection, which is not ready yet.
    pub(super) fn set_link(&self, link: Link) {
        self.state.send_modify(|state| {
            state.link = Some(link);
            state.number += 1;
            state.is_ready = false;
        });
    }

    /// Makes calls wait until [`mark_available`](Self::mark_available), because the server has lost usage.
    pub(super) fn mark_not_ready(&self) {
        self.state.send_if_modified(|state| {
            state.is_ready = false;
            false
        });
    }

    /// Makes calls wait until this process has reported its usage to a server that has lost data.
    pub(super) fn request_reports(&self) {
        self.mark_not_ready();
        self.check_requested.notify_one();
    }

    /// Drops the connection with this number, because it is broken.
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

    /// Marks the store as unavailable. Returns whether it was available before.
    pub(super) fn mark_unavailable(&self, outage: Outage) -> bool {
        let lost = self.state.send_if_modified(|state| {
            let is_available = state.outage.is_none();
            if is_available {
                state.outage = Some(outage);
            }
            is_available
        });
        self.check_requested.notify_one();
        lost
    }

    /// Sets the cause of the current outage. If the outage is not logged yet, `begin_log` decides whether
    /// to log it now; returns its result.
    pub(super) fn set_cause<T>(
        &self,
        cause: &str,
        begin_log: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        let mut begun = None;
        self.state.send_if_modified(|state| {
            if let Some(outage) = &mut state.outage {
                if !outage.is_logged {
                    begun = begin_log();
                    outage.is_logged = begun.is_some();
                }
                if *outage.cause != *cause {
                    outage.cause = cause.into();
                }
            }
            false
        });
        begun
    }

    /// Marks the store as available. Returns the outage that ended, if any.
    pub(super) fn mark_available(&self) -> Option<Outage> {
        let mut outage = None;
        self.state.send_if_modified(|state| {
            outage = state.outage.take();
            let was_ready = std::mem::replace(&mut state.is_ready, true);
            outage.is_some() || !was_ready
        });
        outage
    }
}

impl ConnectionState {
    fn is_available(&self) -> bool {
        self.outage.is_none() && self.link.is_some() && self.is_ready
    }
}
