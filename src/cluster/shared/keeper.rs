use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::failure::Failure;
use super::link::Link;
use super::members;
use super::url::Server;
use crate::cluster::dial::CONNECT;
use crate::limiter::Clock;

/// Keeps the connection: opens it, tests it once a second and whenever something was wrong, and says
/// when the store is away and when it is back.
#[derive(Debug)]
pub(super) struct Keeper {
    core: Arc<Core>,
    server: Server,
    /// Which of several hosts is asked for the way.
    host: usize,
}

impl Keeper {
    pub(super) fn new(core: Arc<Core>, server: Server) -> Self {
        Self { core, server, host: 0 }
    }

    pub(super) async fn keep(mut self) {
        let mut pause = SHORTEST;
        loop {
            match self.test().await {
                Ok(()) => {
                    pause = SHORTEST;
                    self.rest().await;
                }
                Err(failure) => {
                    self.core.lost(&failure);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST);
                }
            }
        }
    }

    /// Until the next beat, or until something is wrong.
    async fn rest(&self) {
        let trouble = self.core.store.way.trouble.notified();
        let _ = tokio::time::timeout(BEAT, trouble).await;
    }

    /// Whether the store can be used now; opens a connection if there is none. One that breaks under
    /// the test says no more than one that breaks under a call: there may be another.
    async fn test(&mut self) -> Result<(), Failure> {
        let core = Arc::clone(&self.core);
        let way = &core.store.way;
        for _ in 0..CONNECTIONS {
            if !way.has_link() {
                way.connected(self.open().await?);
            }
            let (link, number) = way.link(true).await?;
            let tested = match self.beat(link).await {
                Ok(()) => self.core.returned().await,
                failed => failed,
            };
            let Err(failure) = tested else { return Ok(()) };
            if failure.ends_link() {
                way.broken(number);
            }
            if failure != Failure::Broken {
                return Err(failure);
            }
        }
        Err(Failure::Broken)
    }

    /// By way of the host that led there last, or of the first after it that does.
    async fn open(&mut self) -> Result<Link, Failure> {
        let mut opened = Err(Failure::Late);
        for _ in 0..self.server.hosts() {
            opened = self.open_here().await;
            if opened.is_ok() {
                break;
            }
            self.host = self.host.wrapping_add(1);
        }
        opened
    }

    async fn open_here(&self) -> Result<Link, Failure> {
        let (server, timeout) =
            (self.server.by_way_of(self.host), self.core.store.settings.timeout);
        let opening = Link::open(&server, timeout);
        match tokio::time::timeout(CONNECT * server.hops(), opening).await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(Failure::Late),
        }
    }

    async fn beat(&self, mut link: Link) -> Result<(), Failure> {
        let store = &self.core.store;
        let (name, sent) = (store.names.members(), store.ticks.now());
        let command = members::beat(&name, store.process);
        let beating = link.query::<(u64, u64)>(&command);
        let beat = tokio::time::timeout(store.settings.timeout, beating).await;
        let (time, count) = beat.map_err(|_| Failure::Late)??;
        store.counters.members.set(count.max(1));
        if !store.names.are_spread() {
            store.note_time("", time, sent);
        }
        Ok(())
    }
}

/// So many may break one after the other.
const CONNECTIONS: usize = 10;
const BEAT: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(50);
