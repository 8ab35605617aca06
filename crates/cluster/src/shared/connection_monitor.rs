//! The background task that keeps the connection to the store alive.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::Clock;

use super::coordinator::Coordinator;
use super::eviction::warn_if_evicting;
use super::failure::Failure;
use super::link::Link;
use super::members::{Heartbeat, Known};
use super::outage::Outage;
use super::url::Server;
use crate::cause::Cause;
use crate::dial::CONNECT_TIMEOUT;

/// Opens the connection, checks it once per second and after each failure, and reports when the
/// store becomes unavailable or available again.
#[derive(Debug)]
pub(super) struct ConnectionMonitor {
    coordinator: Arc<Coordinator>,
    server: Server,
    /// The index of the host to connect through, if there are several.
    host: usize,
    checked_eviction: bool,
    /// The number of the last heartbeat.
    last_heartbeat: u64,
    connected_at: Timestamp,
}

impl ConnectionMonitor {
    pub(super) fn new(coordinator: Arc<Coordinator>, server: Server) -> Self {
        Self {
            coordinator,
            server,
            host: 0,
            checked_eviction: false,
            last_heartbeat: 0,
            connected_at: Timestamp::UNIX_EPOCH,
        }
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
                self.connected_at = coordinator.store.ticks.now();
                self.check_eviction(&link);
                connection.set_link(link);
            }
            let (link, number) = connection.link(true).await?;
            let failure = match self.check_in(link).await {
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

    /// Reports this process as alive, then marks the store as available. Before that, a server that has lost
    /// its data gets the usage that this process knows and waits for the reports of the others, and the
    /// amounts that were admitted without it are charged. Returns the outage that ended, if any.
    ///
    /// # Errors
    /// Returns [`Failure`] if the store does not accept the calls.
    async fn check_in(&mut self, mut link: Link) -> Result<Option<Outage>, Failure> {
        let coordinator = Arc::clone(&self.coordinator);
        let store = &coordinator.store;
        let generation = store.generation.load(Ordering::Relaxed);
        let mut reported_to = generation;
        let heartbeat = loop {
            let heartbeat = self.heartbeat(&mut link, reported_to).await?;
            if reported_to != 0 && heartbeat.generation != reported_to {
                store.connection.mark_not_ready();
                store.restore_usage().await?;
                reported_to = heartbeat.generation;
            } else if heartbeat.is_complete {
                break heartbeat;
            } else {
                tokio::time::sleep(MIN_PAUSE).await;
            }
        };
        if generation == 0 && !store.redis_keys.is_spread() {
            store.views.lock().clock().add_earlier(&heartbeat.jumps);
        }
        store.generation.store(heartbeat.generation, Ordering::Relaxed);
        self.last_heartbeat = heartbeat.number;
        // Others may be about to reconnect.
        let is_settled = store.ticks.now() - self.connected_at >= MEMBERS_RETURN;
        if is_settled || heartbeat.members >= store.counters.members.get() {
            store.counters.members.set(heartbeat.members);
            store.counters.rank.set(heartbeat.rank);
        }
        coordinator.charge_debts().await?;
        let outage = store.connection.mark_available();
        if outage.is_some() {
            coordinator.fallback.lock().end_outage();
        }
        Ok(outage)
    }

    async fn heartbeat(&self, link: &mut Link, reported_to: u64) -> Result<Heartbeat, Failure> {
        let store = &self.coordinator.store;
        let known = Known {
            process: store.process,
            generation: store.generation.load(Ordering::Relaxed),
            heartbeat: self.last_heartbeat,
            reported_to,
            members: store.counters.members.get(),
            jumps: store.views.lock().clock().jumps().to_vec(),
        };
        let (members, reports) = (store.redis_keys.members(), store.redis_keys.reports());
        let sent = store.ticks.now();
        let heartbeat = Heartbeat::send(link, [&members, &reports], &known);
        let heartbeat = tokio::time::timeout(store.settings.timeout, heartbeat).await;
        let heartbeat = heartbeat.map_err(|_| Failure::TimedOut)??;
        let received = store.ticks.now();
        store.heartbeat_clock.lock().record(heartbeat.time, sent, received);
        if !store.redis_keys.is_spread() {
            store.record_time("", heartbeat.time, sent);
        }
        Ok(heartbeat)
    }
}

/// The maximum number of connections to try during one check.
const MAX_ATTEMPTS: usize = 10;
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time after a connection in which other processes may connect again.
const MEMBERS_RETURN: Duration = Duration::from_millis(3_500);
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(50);
