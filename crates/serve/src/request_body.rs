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
use paceline::middleware::BoxError;

/// Limits the length of a request body and the time to receive it. An empty body is not wrapped.
pub(super) fn bounded<B>(body: B, bounds: &Bounds) -> Body
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    if body.is_end_stream() {
        return Body::empty();
    }
    let body = Limited::new(body, bounds.body);
    Body::new(TimeoutBody { body, timeout: bounds.body_timeout, deadline: None })
}

/// A body that fails if it is incomplete when the timeout expires. The timeout starts at the first
/// pending poll.
#[pin_project]
struct TimeoutBody<B> {
    #[pin]
    body: Limited<B>,
    timeout: Duration,
    #[pin]
    deadline: Option<Sleep>,
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
        if this.deadline.is_none() {
            this.deadline.set(Some(sleep(*this.timeout)));
        }
        let deadline = this.deadline.as_mut().as_pin_mut().expect("the deadline was set above");
        std::task::ready!(deadline.poll(cx));
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
