use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tracing::Span;

use super::reading::Reading;
use crate::provider::ApiError;

pin_project! {
    /// A body whose bytes are read by a [`Reading`] and forwarded unchanged.
    pub(super) struct ForwardingBody<B> {
        #[pin]
        inner: B,
        reading: Option<Reading>,
        // The error in the body of a successful response.
        error: Option<Box<ApiError>>,
    }
}

impl<B: Body> ForwardingBody<B> {
    pub(super) fn new(inner: B, reading: Reading) -> Self {
        // The caller may never poll an empty body, so that its reservation is settled here.
        let reading = (!inner.is_end_stream()).then_some(reading);
        Self { inner, reading, error: None }
    }

    /// Ends the reservation, even if the body hasn't ended.
    pub(super) fn end(self: Pin<&mut Self>) {
        let this = self.project();
        if let Some(reading) = this.reading.take() {
            *this.error = reading.end();
        }
    }

    /// Returns the error in the body of a successful response, after the body has ended.
    pub(super) fn error(&self) -> Option<&ApiError> {
        self.error.as_deref()
    }
}

impl<B: Body<Data = Bytes>> Body for ForwardingBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.as_mut().project();
        let _inside = this.reading.as_ref().and_then(Reading::span).map(Span::entered);
        let Poll::Ready(frame) = this.inner.as_mut().poll_frame(cx) else {
            if let Some(reading) = this.reading {
                reading.awaits_more();
            }
            return Poll::Pending;
        };
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        if let (Some(bytes), Some(reading)) = (data, &mut *this.reading) {
            reading.bytes(bytes);
        }
        let broken = matches!(frame, Some(Err(_)));
        let whole = frame.is_none() || (!broken && this.inner.is_end_stream());
        if let (true, Some(reading)) = (whole, &mut *this.reading) {
            reading.ended();
        }
        if whole || broken {
            self.end();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
