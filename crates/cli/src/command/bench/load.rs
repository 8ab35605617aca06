use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::super::signal::asked_to_stop;
use super::BenchArgs;
use super::connection::Connection;
use super::question::Question;
use super::tally::Tally;
use tollgate::limiter::{Clock, SystemClock};

/// What is sent, and for how long.
pub(super) struct Load {
    address: SocketAddr,
    http2: bool,
    connections: u16,
    question: Question,
    /// How many requests there are.
    requests: u64,
    /// The number of the next.
    next: AtomicU64,
    limit: Option<Duration>,
    clock: SystemClock,
}

/// How it went.
pub(super) struct Measured {
    pub(super) tally: Tally,
    pub(super) elapsed: Duration,
    pub(super) interrupted: bool,
}

impl Load {
    /// # Errors
    /// As [`Question::new`].
    pub(super) fn new(args: &BenchArgs, address: SocketAddr) -> Result<Self, String> {
        Ok(Self {
            address,
            http2: args.http2,
            connections: args.connections,
            question: Question::new(args)?,
            requests: args.requests.unwrap_or(u64::MAX),
            next: AtomicU64::new(0),
            limit: args.limit(),
            clock: SystemClock::new(),
        })
    }

    /// Opens the connections, and asks on all of them until the requests or the time are used up.
    ///
    /// # Errors
    /// Says why a connection can't be made.
    pub(super) async fn run(self) -> Result<Measured, String> {
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            connections.push(Connection::open(self.address, self.http2).await?);
        }
        let (load, stop) = (Arc::new(self), CancellationToken::new());
        let started = load.clock.now();
        let mut asking = JoinSet::new();
        for connection in connections {
            asking.spawn(load.clone().ask_until(stop.clone(), connection));
        }
        let mut tally = Tally::default();
        let all = async {
            while let Some(ended) = asking.join_next().await {
                tally.add(ended.unwrap_or_default());
            }
        };
        let interrupted = load.stopping_at_the_end(&stop, all).await;
        let elapsed = load.clock.now() - started;
        Ok(Measured { tally, elapsed, interrupted })
    }

    /// Waits for all, and has them stop in time; says whether they were interrupted.
    async fn stopping_at_the_end(
        &self,
        stop: &CancellationToken,
        all: impl Future<Output = ()>,
    ) -> bool {
        let mut all = std::pin::pin!(all);
        let time_is_up = async {
            match self.limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let interrupted = tokio::select! {
            () = &mut all => return false,
            () = time_is_up => false,
            _ = asked_to_stop() => true,
        };
        stop.cancel();
        all.await;
        interrupted
    }

    /// What a connection has seen until it is stopped, which cuts off the request it is waiting for.
    async fn ask_until(self: Arc<Self>, stop: CancellationToken, connection: Connection) -> Tally {
        let mut tally = Tally::default();
        stop.run_until_cancelled(self.ask(connection, &mut tally)).await;
        tally
    }

    /// Asks until all requests are sent. A connection that breaks is made again, once.
    async fn ask(&self, mut connection: Connection, tally: &mut Tally) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.requests {
                return;
            }
            if connection.ready().await.is_err() {
                connection = match Connection::open(self.address, self.http2).await {
                    Ok(connection) => connection,
                    Err(error) => return tally.failed(error),
                };
            }
            let request = self.question.request(number);
            tally.sent += 1;
            let sent = self.clock.now();
            match connection.ask(request).await {
                Ok(status) => {
                    tally.answered(status, self.clock.now() - sent);
                }
                Err(error) => tally.failed(error.to_string()),
            }
        }
    }
}
