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

/// A body that fails when it is longer than the server takes, or takes longer to come. One without
/// content costs nothing.
pub(super) fn bounded<B>(body: B, bounds: &Bounds) -> Body
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    if body.is_end_stream() {
        return Body::empty();
    }
    let body = Limited::new(body, bounds.body);
    Body::new(Timed { body, time: bounds.body_timeout, until: None })
}

/// A body that fails if it isn't whole in time, counted from when it is first read.
#[pin_project]
struct Timed<B> {
    #[pin]
    body: Limited<B>,
    time: Duration,
    #[pin]
    until: Option<Sleep>,
}

impl<B: http_body::Body<Data = Bytes, Error: Into<BoxError>>> http_body::Body for Timed<B> {
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
        let until = this.until.as_mut().as_pin_mut().expect("was set above");
        std::task::ready!(until.poll(cx));
        Poll::Ready(Some(Err(Error::new(io::Error::new(io::ErrorKind::TimedOut, TOO_SLOW)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

const TOO_SLOW: &str = "the body of the request took too long";
