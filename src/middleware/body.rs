use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

use super::reading::Reading;

/// A response body on its way: its bytes pass unchanged and are read in passing. The reservation
/// behind it settles at its end, its error or its drop.
#[pin_project]
pub struct ResponseBody<B> {
    #[pin]
    inner: B,
    reading: Option<Reading>,
}

impl<B> ResponseBody<B> {
    pub(super) fn new(inner: B, reading: Reading) -> Self
    where
        B: Body,
    {
        // Whoever sees that there is nothing to read may never poll: that is the end already.
        let reading = (!inner.is_end_stream()).then_some(reading);
        Self { inner, reading }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.inner.as_mut().poll_frame(cx));
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        if let (Some(bytes), Some(reading)) = (data, &mut *this.reading) {
            reading.bytes(bytes);
        }
        if !matches!(frame, Some(Ok(_))) || this.inner.is_end_stream() {
            *this.reading = None;
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

impl<B> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("reading", &self.reading).finish_non_exhaustive()
    }
}
