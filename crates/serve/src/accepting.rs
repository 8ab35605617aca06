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

use super::activity::Asked;
use super::config::Bounds;
use super::connection::Connection;
use super::front::Front;
use super::timed_stream::TimedStream;
use super::watch::Watch;

/// Takes connections until it is asked to stop, and serves each in a task of its own.
///
/// At the bound of connections it takes no more until one ends: those that come meanwhile wait with
/// the system, as its backlog lets them.
pub(super) struct Accepting {
    listener: TcpListener,
    front: Front,
    builder: Builder<TokioExecutor>,
    bounds: Bounds,
    stopping: CancellationToken,
    watch: Watch,
    tasks: TaskTracker,
}

impl Accepting {
    pub(super) fn new(
        listener: TcpListener,
        front: Front,
        bounds: Bounds,
        stopping: CancellationToken,
    ) -> Self {
        let (watch, tasks) = (Watch::new(&bounds), TaskTracker::new());
        Self { listener, front, builder: builder(&bounds), bounds, stopping, watch, tasks }
    }

    /// Runs until it is asked to stop, and on until all answers on their way have ended, or `drain`,
    /// which is polled from then on, has.
    pub(super) async fn run(mut self, drain: impl Future<Output = ()>) {
        let room = Arc::new(Semaphore::new(self.bounds.connections));
        let mut looks = interval(self.watch.pause());
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first would be at once.
        looks.reset();
        while let Some((stream, permit)) = self.next(&room, &mut looks).await {
            self.serve(stream, permit);
        }
        let Self { listener, tasks, mut watch, .. } = self;
        drop(listener);
        tasks.close();
        watch.ask(Asked::ToLeave);
        let drained = async {
            loop {
                tokio::select! {
                    () = tasks.wait() => return,
                    _ = looks.tick() => watch.look(),
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
                "answers were cut off at the end of the drain"
            );
            watch.ask(Asked::ToEnd);
            tasks.wait().await;
        }
    }

    /// The next connection; `None` when it is asked to stop.
    async fn next(
        &mut self,
        room: &Arc<Semaphore>,
        looks: &mut Interval,
    ) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let Self { listener, watch, stopping, .. } = self;
        let accept = async {
            let permit = Arc::clone(room).acquire_owned().await.expect("it isn't closed");
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => return (stream, permit),
                    Err(error) => rest_after(&error).await,
                }
            }
        };
        let mut accept = pin!(accept);
        loop {
            tokio::select! {
                () = stopping.cancelled() => return None,
                next = &mut accept => return Some(next),
                _ = looks.tick() => watch.look(),
            }
        }
    }

    /// Serves a connection to its end.
    fn serve(&mut self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        // Answers are small, and a wait for more to send with them is a wait.
        let _ = stream.set_nodelay(true);
        keep_alive(&stream);
        let front = self.front.for_connection(stream.peer_addr().ok());
        let activity = front.activity();
        self.watch.add(&activity);
        // Who takes nothing of an answer is as slow as who sends nothing of a body.
        let stream = TimedStream::new(stream, self.bounds.body_timeout, Arc::clone(&activity));
        let stream = TokioIo::new(stream);
        let serving = self.builder.serve_connection(stream, front).into_owned();
        let connection = Connection::new(serving, activity);
        self.tasks.spawn(async move {
            let _permit = permit;
            connection.await;
        });
    }
}

/// A client that is gone without a word is found out in time.
fn keep_alive(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE));
}

/// Rests if there is nothing to be done but to wait until others have closed their files.
async fn rest_after(error: &io::Error) {
    // Of the connection that was to be taken, not of ours.
    let theirs =
        [ErrorKind::ConnectionRefused, ErrorKind::ConnectionAborted, ErrorKind::ConnectionReset];
    if !theirs.contains(&error.kind()) {
        tracing::warn!(%error, "no connection can be taken");
        sleep(REST).await;
    }
}

fn builder(bounds: &Bounds) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        // A timer for each request costs more than to watch all connections.
        .header_read_timeout(None)
        .max_buf_size(bounds.head);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(bounds.head_timeout)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(bounds.head).unwrap_or(u32::MAX));
    builder
}

/// How long a connection may be silent before the system asks its client whether it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How often a client of HTTP/2 has to show that it is still there.
const PING: Duration = Duration::from_secs(20);

/// Requests at a time by one connection of HTTP/2; others wait with their client.
const STREAMS: u32 = 1_000;

/// Out of files: until others have closed theirs.
const REST: Duration = Duration::from_millis(250);
