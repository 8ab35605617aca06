use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::super::signal::stop_requested;
use super::BenchArgs;
use super::connection::Connection;
use super::load_stats::LoadStats;
use super::request_template::RequestTemplate;
use paceline::limiter::{Clock, SystemClock};

/// The requests to send and their duration.
pub(super) struct Load {
    address: SocketAddr,
    http2: bool,
    connections: u16,
    request_template: RequestTemplate,
    /// The total number of requests.
    requests: u64,
    /// The number of the next request.
    next: AtomicU64,
    limit: Option<Duration>,
    clock: SystemClock,
}

/// The result of a benchmark.
pub(super) struct LoadResult {
    pub(super) stats: LoadStats,
    pub(super) elapsed: Duration,
    pub(super) interrupted: bool,
}

impl Load {
    /// Returns the load of the arguments.
    ///
    /// # Errors
    /// As [`RequestTemplate::new`].
    pub(super) fn new(args: &BenchArgs, address: SocketAddr) -> Result<Self, String> {
        Ok(Self {
            address,
            http2: args.http2,
            connections: args.connections,
            request_template: RequestTemplate::new(args)?,
            requests: args.requests.unwrap_or(u64::MAX),
            next: AtomicU64::new(0),
            limit: args.limit(),
            clock: SystemClock::new(),
        })
    }

    /// Opens the connections and sends requests on all of them until the requests or the time are
    /// used up.
    ///
    /// # Errors
    /// Returns the reason why a connection failed.
    pub(super) async fn run(self) -> Result<LoadResult, String> {
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            connections.push(Connection::open(self.address, self.http2).await?);
        }
        let (load, stop) = (Arc::new(self), CancellationToken::new());
        let started = load.clock.now();
        let mut workers = JoinSet::new();
        for connection in connections {
            workers.spawn(load.clone().send_until(stop.clone(), connection));
        }
        let mut stats = LoadStats::default();
        let all = async {
            while let Some(ended) = workers.join_next().await {
                stats.add(ended.unwrap_or_default());
            }
        };
        let interrupted = load.wait_or_stop(&stop, all).await;
        let elapsed = load.clock.now() - started;
        Ok(LoadResult { stats, elapsed, interrupted })
    }

    /// Waits until all connections finish, the time is up, or the user interrupts. Returns true if
    /// interrupted.
    async fn wait_or_stop(&self, stop: &CancellationToken, all: impl Future<Output = ()>) -> bool {
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
            _ = stop_requested() => true,
        };
        stop.cancel();
        all.await;
        interrupted
    }

    /// Sends requests until stopped, which cancels the request in flight.
    async fn send_until(
        self: Arc<Self>,
        stop: CancellationToken,
        connection: Connection,
    ) -> LoadStats {
        let mut stats = LoadStats::default();
        stop.run_until_cancelled(self.send_all(connection, &mut stats)).await;
        stats
    }

    /// Sends requests until none is left. Reconnects if the connection was closed.
    async fn send_all(&self, mut connection: Connection, stats: &mut LoadStats) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.requests {
                return;
            }
            if connection.ready().await.is_err() {
                connection = match Connection::open(self.address, self.http2).await {
                    Ok(connection) => connection,
                    Err(error) => return stats.failed(error),
                };
            }
            let request = self.request_template.request(number);
            stats.sent += 1;
            let sent = self.clock.now();
            match connection.send(request).await {
                Ok(status) => {
                    stats.answered(status, self.clock.now() - sent);
                }
                Err(error) => stats.failed(error.to_string()),
            }
        }
    }
}
