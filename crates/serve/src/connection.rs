use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Connection as Serving;
use pin_project::pin_project;

use super::activity::{Activity, Close};
use super::connection_service::ConnectionService;
use super::timed_stream::TimedStream;

/// A connection that is served to its end, or until its [`Activity`] requests to close it.
#[pin_project]
pub(super) struct Connection {
    #[pin]
    serving: Serving<'static, TokioIo<TimedStream>, ConnectionService, TokioExecutor>,
    activity: Arc<Activity>,
    is_closing: bool,
}

impl Connection {
    pub(super) fn new(
        serving: Serving<'static, TokioIo<TimedStream>, ConnectionService, TokioExecutor>,
        activity: Arc<Activity>,
    ) -> Self {
        Self { serving, activity, is_closing: false }
    }
}

impl Future for Connection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        match this.activity.poll_close(cx.waker()) {
            Close::None => {}
            Close::Graceful if *this.is_closing => {}
            Close::Graceful => {
                *this.is_closing = true;
                this.serving.as_mut().graceful_shutdown();
            }
            Close::Immediate => return Poll::Ready(()),
        }
        // Clients may disconnect at any time; an error is not worth a log line.
        this.serving.poll(cx).map(drop)
    }
}
