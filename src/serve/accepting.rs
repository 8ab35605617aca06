use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::activity::Look;
use super::front::Front;
use super::timed_stream::TimedStream;
use crate::config::Bounds;

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
    /// Done when what is still being answered is cut off.
    cut: CancellationToken,
    tasks: TaskTracker,
}

impl Accepting {
    pub(super) fn new(
        listener: TcpListener,
        front: Front,
        bounds: Bounds,
        stopping: CancellationToken,
    ) -> Self {
        let (cut, tasks) = (CancellationToken::new(), TaskTracker::new());
        Self { listener, front, builder: builder(&bounds), bounds, stopping, cut, tasks }
    }

    /// Runs until it is asked to stop, and on until all answers on their way have ended, or `drain` is
    /// over.
    pub(super) async fn run(self, drain: Duration) {
        let room = Arc::new(Semaphore::new(self.bounds.connections));
        while let Some((stream, permit)) = self.next(&room).await {
            self.tasks.spawn(self.connection(stream, permit));
        }
        let Self { listener, tasks, cut, .. } = self;
        drop(listener);
        tasks.close();
        if timeout(drain, tasks.wait()).await.is_err() {
            tracing::warn!(
                connections = tasks.len(),
                "answers were cut off at the end of the drain"
            );
            cut.cancel();
            tasks.wait().await;
        }
    }

    /// The next connection; `None` when it is asked to stop.
    async fn next(&self, room: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let accept = async {
            let permit = Arc::clone(room).acquire_owned().await.expect("it isn't closed");
            loop {
                match self.listener.accept().await {
                    Ok((stream, _)) => return (stream, permit),
                    Err(error) => rest_after(&error).await,
                }
            }
        };
        tokio::select! {
            () = self.stopping.cancelled() => None,
            next = accept => Some(next),
        }
    }

    /// Serves a connection to its end.
    fn connection(
        &self,
        stream: TcpStream,
        permit: OwnedSemaphorePermit,
    ) -> impl Future<Output = ()> + 'static {
        // Answers are small, and a wait for more to send with them is a wait.
        let _ = stream.set_nodelay(true);
        let front = self.front.for_connection();
        let activity = front.activity();
        keep_alive(&stream);
        // Who takes nothing of an answer is as slow as who sends nothing of a body.
        let patience = self.bounds.body_timeout;
        let stream = TokioIo::new(TimedStream::new(stream, patience));
        let connection = self.builder.serve_connection(stream, front).into_owned();
        let (stopping, cut) = (self.stopping.clone(), self.cut.clone());
        let rest = self.bounds.head_timeout;
        async move {
            let _permit = permit;
            let mut connection = std::pin::pin!(connection);
            let (mut is_leaving, mut asked) = (false, 0);
            // How a connection ends is nobody's fault here: a client goes when it likes.
            loop {
                let leaves = tokio::select! {
                    _ = connection.as_mut() => return,
                    () = cut.cancelled() => return,
                    () = stopping.cancelled(), if !is_leaving => true,
                    look = activity.rest(rest, &mut asked, patience) => match look {
                        Look::Stuck => return,
                        Look::Idle => true,
                        Look::Busy => false,
                    },
                };
                if leaves && !is_leaving {
                    is_leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
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
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.head_timeout)
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
