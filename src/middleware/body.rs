use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::forwarding_body::ForwardingBody;
use super::read_ahead::ReadAhead;

pin_project! {
    /// A response body that reads the usage from its bytes and forwards them unchanged. The request's
    /// reservation is settled when the body ends, fails or is dropped.
    pub struct ResponseBody<B>
    where
        B: Body<Data = Bytes>,
    {
        #[pin]
        inner: Inner<B>,
    }
}

pin_project! {
    #[project = InnerProjection]
    // Not boxed, so that a response needs no allocation.
    enum Inner<B>
    where
        B: Body<Data = Bytes>,
    {
        Streamed { #[pin] body: ForwardingBody<B> },
        // The body of a response that was judged before it was returned.
        Buffered { body: Box<ReadAhead<ForwardingBody<B>>> },
    }
}

impl<B: Body<Data = Bytes>> ResponseBody<B> {
    pub(super) fn new(body: ForwardingBody<B>) -> Self {
        Self { inner: Inner::Streamed { body } }
    }

    pub(super) fn buffered(body: Box<ReadAhead<ForwardingBody<B>>>) -> Self {
        Self { inner: Inner::Buffered { body } }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().inner.project() {
            InnerProjection::Streamed { body } => body.poll_frame(cx),
            InnerProjection::Buffered { body } => Pin::new(&mut **body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Streamed { body } => body.is_end_stream(),
            Inner::Buffered { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Streamed { body } => body.size_hint(),
            Inner::Buffered { body } => body.size_hint(),
        }
    }
}

impl<B: Body<Data = Bytes>> fmt::Debug for ResponseBody<B> {
    /// Omits the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buffered = matches!(self.inner, Inner::Buffered { .. });
        f.debug_struct("ResponseBody").field("buffered", &buffered).finish_non_exhaustive()
    }
}
