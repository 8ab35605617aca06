use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::failure::Failure;
use super::link::Link;

/// The way to the store: its connection, or since when there is none.
#[derive(Debug)]
pub(super) struct Way {
    state: watch::Sender<State>,
    /// Tells who keeps the connection that something is wrong with it.
    pub(super) trouble: Notify,
}

#[derive(Debug, Clone, Default)]
struct State {
    link: Option<Link>,
    /// How many connections there have been.
    number: u64,
    away: Option<Away>,
}

/// The store can't be asked.
#[derive(Debug, Clone)]
pub(super) struct Away {
    /// In nanoseconds since the epoch.
    pub(super) since: u64,
    pub(super) reason: Arc<str>,
}

impl Way {
    pub(super) fn new() -> Self {
        Self { state: watch::Sender::new(State::default()), trouble: Notify::new() }
    }

    pub(super) fn away(&self) -> Option<Away> {
        self.state.borrow().away.clone()
    }

    pub(super) fn is_away(&self) -> bool {
        self.state.borrow().away.is_some()
    }

    pub(super) fn is_there(&self) -> bool {
        let state = self.state.borrow();
        state.away.is_none() && state.link.is_some()
    }

    pub(super) fn has_link(&self) -> bool {
        self.state.borrow().link.is_some()
    }

    /// The connection and its number, once it stands; for who tests it, also while the store is away.
    pub(super) async fn link(&self, while_away: bool) -> Result<(Link, u64), Failure> {
        let mut states = self.state.subscribe();
        let known = |state: &State| state.link.is_some() || (state.away.is_some() && !while_away);
        let state = states.wait_for(known).await.map_err(|_| Failure::Away)?;
        match (&state.link, &state.away) {
            (Some(link), None) => Ok((link.clone(), state.number)),
            (Some(link), Some(_)) if while_away => Ok((link.clone(), state.number)),
            _ => Err(Failure::Away),
        }
    }

    /// Waits until the store can be asked.
    pub(super) async fn back(&self) {
        let there = |state: &State| state.away.is_none() && state.link.is_some();
        // Fails only where the way itself is gone.
        let _ = self.state.subscribe().wait_for(there).await;
    }

    pub(super) fn connected(&self, link: Link) {
        self.state.send_modify(|state| {
            state.link = Some(link);
            state.number += 1;
        });
    }

    /// This connection is of no use any more.
    pub(super) fn broken(&self, number: u64) {
        let ended = self.state.send_if_modified(|state| {
            let current = state.number == number && state.link.is_some();
            if current {
                state.link = None;
            }
            current
        });
        if ended {
            self.trouble.notify_one();
        }
    }

    /// The store can't be asked any more. Whether it could, before.
    pub(super) fn lost(&self, since: u64, reason: &str) -> bool {
        let lost = self.state.send_if_modified(|state| {
            let there = state.away.is_none();
            if there {
                state.away = Some(Away { since, reason: reason.into() });
            }
            there
        });
        self.trouble.notify_one();
        lost
    }

    /// It can be asked again: how it was away, if it was.
    pub(super) fn returned(&self) -> Option<Away> {
        let mut away = None;
        self.state.send_if_modified(|state| {
            away = state.away.take();
            away.is_some()
        });
        away
    }
}
