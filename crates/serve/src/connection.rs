use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Connection as Serving;
use pin_project::pin_project;

use super::activity::{Activity, Asked};
use super::front::Front;
use super::timed_stream::TimedStream;

/// A connection that is served to its end: its own, or that which its [`Activity`] was told.
#[pin_project]
pub(super) struct Connection {
    #[pin]
    serving: Serving<'static, TokioIo<TimedStream>, Front, TokioExecutor>,
    activity: Arc<Activity>,
    is_leaving: bool,
}

impl Connection {
    pub(super) fn new(
        serving: Serving<'static, TokioIo<TimedStream>, Front, TokioExecutor>,
        activity: Arc<Activity>,
    ) -> Self {
        Self { serving, activity, is_leaving: false }
    }
}

impl Future for Connection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        match this.activity.asked(cx.waker()) {
            Asked::Nothing => {}
            Asked::ToLeave if *this.is_leaving => {}
            Asked::ToLeave => {
                *this.is_leaving = true;
                this.serving.as_mut().graceful_shutdown();
            }
            Asked::ToEnd => return Poll::Ready(()),
        }
        // How a connection ends is nobody's fault here: a client goes when it likes.
        this.serving.poll(cx).map(drop)
    }
}
