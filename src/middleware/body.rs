use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

use super::watch::Watch;

/// A response body on its way: its bytes pass unchanged and are read in passing. The reservation
/// behind it settles at its end, its error or its drop.
#[pin_project]
pub struct ResponseBody<B> {
    #[pin]
    inner: B,
    watch: Option<Watch>,
}

impl<B> ResponseBody<B> {
    pub(super) fn new(inner: B, watch: Watch) -> Self {
        Self { inner, watch: Some(watch) }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.inner.poll_frame(cx));
        match (&frame, &mut *this.watch) {
            (Some(Ok(frame)), Some(watch)) => {
                if let Some(bytes) = frame.data_ref() {
                    watch.bytes(bytes);
                }
            }
            _ => *this.watch = None,
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
        f.debug_struct("ResponseBody").field("watch", &self.watch).finish_non_exhaustive()
    }
}
