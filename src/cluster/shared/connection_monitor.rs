//! The background task that keeps the connection to the store alive.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::coordinator::Coordinator;
use super::eviction::warn_if_evicting;
use super::failure::Failure;
use super::link::Link;
use super::members;
use super::url::Server;
use crate::cluster::cause::Cause;
use crate::cluster::dial::CONNECT_TIMEOUT;
use crate::limiter::Clock;

/// Opens the connection, checks it once per second and after each failure, and reports when the
/// store becomes unavailable or available again.
#[derive(Debug)]
pub(super) struct ConnectionMonitor {
    coordinator: Arc<Coordinator>,
    server: Server,
    /// The index of the host to connect through, if there are several.
    host: usize,
    checked_eviction: bool,
}

impl ConnectionMonitor {
    pub(super) fn new(coordinator: Arc<Coordinator>, server: Server) -> Self {
        Self { coordinator, server, host: 0, checked_eviction: false }
    }

    pub(super) async fn run(mut self) {
        let mut pause = MIN_PAUSE;
        loop {
            match self.check().await {
                Ok(()) => {
                    pause = MIN_PAUSE;
                    self.wait_for_next_check().await;
                }
                Err(failure) => {
                    let server = self.server.address(self.host);
                    self.coordinator.on_check_failed(&failure, &server);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    }

    /// Waits until the next check is due or a failure is reported.
    async fn wait_for_next_check(&self) {
        let check_requested = self.coordinator.store.connection.check_requested.notified();
        let _ = tokio::time::timeout(CHECK_INTERVAL, check_requested).await;
    }

    /// Checks whether the store is usable, and opens a connection if there is none. A connection
    /// that breaks during the check is replaced.
    async fn check(&mut self) -> Result<(), Failure> {
        let coordinator = Arc::clone(&self.coordinator);
        let connection = &coordinator.store.connection;
        for _ in 0..MAX_ATTEMPTS {
            if !connection.has_link() {
                let link = self.open().await?;
                self.check_eviction(&link);
                connection.set_link(link);
            }
            let (link, number) = connection.link(true).await?;
            let checked = match self.heartbeat(link).await {
                Ok(()) => self.coordinator.on_connection_restored().await,
                Err(failure) => Err(failure),
            };
            let failure = match checked {
                Ok(outage) => {
                    let server = self.server.address(self.host);
                    outage.inspect(|outage| self.coordinator.log_end(outage, &server));
                    return Ok(());
                }
                Err(failure) => failure,
            };
            if failure.breaks_link() {
                connection.drop_link(number);
            }
            if failure != Failure::ConnectionLost {
                return Err(failure);
            }
        }
        Err(Failure::ConnectionLost)
    }

    /// Opens a connection through the host of the last connection, or else through the next host
    /// that accepts one.
    async fn open(&mut self) -> Result<Link, Failure> {
        for _ in 1..self.server.hosts() {
            let opened = self.open_via_current_host().await;
            if opened.is_ok() {
                return opened;
            }
            self.host = self.host.wrapping_add(1);
        }
        self.open_via_current_host().await
    }

    async fn open_via_current_host(&self) -> Result<Link, Failure> {
        let (server, timeout) =
            (self.server.via_host(self.host), self.coordinator.store.settings.timeout);
        self.coordinator.store.counters.connects.add(1);
        let opening = Link::open(&server, timeout, &self.coordinator.store.settings.tls);
        match tokio::time::timeout(CONNECT_TIMEOUT * (server.hops() + 1), opening).await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(error)) => Err(Failure::NotConnected(Cause::of(&error))),
            Err(_) => Err(Failure::TimedOut),
        }
    }

    /// Checks in the background whether the server may evict keys, after the first connection.
    fn check_eviction(&mut self, link: &Link) {
        if !std::mem::replace(&mut self.checked_eviction, true) {
            let server = self.server.address(self.host);
            tokio::spawn(warn_if_evicting(link.clone(), server));
        }
    }

    async fn heartbeat(&self, mut link: Link) -> Result<(), Failure> {
        let store = &self.coordinator.store;
        let (name, sent) = (store.redis_keys.members(), store.ticks.now());
        let command = members::heartbeat(&name, store.process);
        let query = link.query::<(u64, u64, bool)>(&command);
        let heartbeat = tokio::time::timeout(store.settings.timeout, query).await;
        let (time, count, is_known) = heartbeat.map_err(|_| Failure::TimedOut)??;
        store.counters.members.set(count.max(1));
        if !is_known {
            store.lacks_usage.store(true, Ordering::Relaxed);
        }
        if !store.redis_keys.is_spread() {
            store.record_time("", time, sent);
        }
        Ok(())
    }
}

/// The maximum number of connections to try during one check.
const MAX_ATTEMPTS: usize = 10;
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(50);
