use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::activity::Close;
use super::config::Bounds;
use super::connection::Connection;
use super::connection_service::ConnectionService;
use super::idle_reaper::IdleReaper;
use super::timed_stream::TimedStream;

/// Accepts connections until the server stops, and serves each in a task of its own.
///
/// At the maximum number of connections it accepts no more until one ends; new ones wait in the
/// system's backlog.
pub(super) struct Acceptor {
    listener: TcpListener,
    service: ConnectionService,
    builder: Builder<TokioExecutor>,
    bounds: Bounds,
    stopping: CancellationToken,
    reaper: IdleReaper,
    tasks: TaskTracker,
}

impl Acceptor {
    pub(super) fn new(
        listener: TcpListener,
        service: ConnectionService,
        bounds: Bounds,
        stopping: CancellationToken,
    ) -> Self {
        let (reaper, tasks) = (IdleReaper::new(&bounds), TaskTracker::new());
        Self { listener, service, builder: builder(&bounds), bounds, stopping, reaper, tasks }
    }

    /// Runs until the server stops, and then until all responses are complete or `drain`, which is
    /// polled from then on, completes.
    pub(super) async fn run(mut self, drain: impl Future<Output = ()>) {
        let connections = Arc::new(Semaphore::new(self.bounds.connections));
        let mut checks = interval(self.reaper.interval());
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick would complete immediately.
        checks.reset();
        while let Some((stream, permit)) = self.next(&connections, &mut checks).await {
            self.serve(stream, permit);
        }
        let Self { listener, tasks, mut reaper, .. } = self;
        drop(listener);
        tasks.close();
        reaper.close_all(Close::Graceful);
        let drained = async {
            loop {
                tokio::select! {
                    () = tasks.wait() => return,
                    _ = checks.tick() => reaper.check(),
                }
            }
        };
        let is_drained = tokio::select! {
            () = drained => true,
            () = drain => false,
        };
        if !is_drained {
            tracing::warn!(
                connections = tasks.len(),
                "drain timeout expired; closed the remaining connections"
            );
            reaper.close_all(Close::Immediate);
            tasks.wait().await;
        }
    }

    /// Returns the next connection, or `None` when the server stops. If there are too many open files, closes
    /// connections that are idle.
    async fn next(
        &mut self,
        connections: &Arc<Semaphore>,
        checks: &mut Interval,
    ) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let mut is_reported = false;
        loop {
            match self.accept(connections, checks).await? {
                Ok(next) => return Some(next),
                Err(error) if PER_CONNECTION.contains(&error.kind()) => {}
                Err(error) => {
                    if !is_reported {
                        tracing::warn!(%error, "failed to accept a connection");
                        is_reported = true;
                    }
                    self.reaper.make_room();
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Accepts a connection, or returns `None` when the server stops.
    async fn accept(
        &mut self,
        connections: &Arc<Semaphore>,
        checks: &mut Interval,
    ) -> Option<io::Result<(TcpStream, OwnedSemaphorePermit)>> {
        let Self { listener, reaper, stopping, .. } = self;
        let accept = async {
            let permit = Arc::clone(connections)
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            listener.accept().await.map(|(stream, _)| (stream, permit))
        };
        let mut accept = pin!(accept);
        loop {
            tokio::select! {
                () = stopping.cancelled() => return None,
                next = &mut accept => return Some(next),
                _ = checks.tick() => reaper.check(),
            }
        }
    }

    /// Spawns a task that serves a connection.
    fn serve(&mut self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        // Responses are small; Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        enable_keep_alive(&stream);
        let service = self.service.for_connection(stream.peer_addr().ok());
        let activity = service.activity();
        self.reaper.add(&activity);
        // A client that does not read its response is bounded like one that does not send its body.
        let stream = TimedStream::new(stream, self.bounds.body_timeout, Arc::clone(&activity));
        let stream = TokioIo::new(stream);
        let serving = self.builder.serve_connection(stream, service).into_owned();
        let connection = Connection::new(serving, activity);
        self.tasks.spawn(async move {
            let _permit = permit;
            connection.await;
        });
    }
}

/// Enables TCP keep-alive, which detects clients that vanished.
fn enable_keep_alive(stream: &TcpStream) {
    let _ =
        SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE_IDLE));
}

fn builder(bounds: &Bounds) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        // The idle reaper enforces this timeout; a timer for each request would cost more.
        .header_read_timeout(None)
        .max_buf_size(bounds.head);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(bounds.head_timeout)
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .max_header_list_size(u32::try_from(bounds.head).unwrap_or(u32::MAX));
    builder
}

/// The idle time after which the system sends TCP keep-alive probes.
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(30);

/// The interval of HTTP/2 pings.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// The maximum number of concurrent requests of an HTTP/2 connection.
const MAX_STREAMS: u32 = 1_000;

/// The bytes of a response that an HTTP/2 stream buffers, beyond the last frame.
const MAX_SEND_BUFFER: usize = 64 << 10;

/// Errors of `accept` that concern the new connection only.
const PER_CONNECTION: [ErrorKind; 3] =
    [ErrorKind::ConnectionRefused, ErrorKind::ConnectionAborted, ErrorKind::ConnectionReset];

/// The pause after another error of `accept`, in which a new connection may send its request.
const PAUSE: Duration = Duration::from_millis(100);
