use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::Limited;
use pin_project::pin_project;
use tokio::time::{Sleep, sleep};

use super::config::Bounds;
use tollgate::middleware::BoxError;

/// Bounds the length and the time of a request body. An empty body costs nothing.
pub(super) fn bounded<B>(body: B, bounds: &Bounds) -> Body
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    if body.is_end_stream() {
        return Body::empty();
    }
    let body = Limited::new(body, bounds.body);
    Body::new(TimeoutBody { body, time: bounds.body_timeout, until: None })
}

/// A body that fails if it is not complete in time, counted from the first poll that is pending.
#[pin_project]
struct TimeoutBody<B> {
    #[pin]
    body: Limited<B>,
    time: Duration,
    #[pin]
    until: Option<Sleep>,
}

impl<B: http_body::Body<Data = Bytes, Error: Into<BoxError>>> http_body::Body for TimeoutBody<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let mut this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Error::new)));
        }
        if this.until.is_none() {
            this.until.set(Some(sleep(*this.time)));
        }
        let until = this.until.as_mut().as_pin_mut().expect("the deadline was set above");
        std::task::ready!(until.poll(cx));
        Poll::Ready(Some(Err(Error::new(io::Error::new(io::ErrorKind::TimedOut, TIMED_OUT)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

const TIMED_OUT: &str = "timed out reading the request body";
