use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tracing::Span;

use crate::middleware::ResponseGuard;

pin_project! {
    /// The response body in server mode.
    ///
    /// Holds either the unchanged body of the inner service together with the reservation, which ends
    /// when the body does, or the problem document for a refused request.
    pub struct RespondBody<B>
    where
        B: Body<Data = Bytes>,
    {
        #[pin]
        content: Content<B>,
    }
}

pin_project! {
    #[project = ContentProjection]
    // Not boxed: nearly every body is of the larger variant.
    enum Content<B> {
        // Dropping the guard ends the reservation.
        Inner { #[pin] body: B, guard: Option<ResponseGuard> },
        Refused { text: Option<Bytes> },
    }
}

impl<B: Body<Data = Bytes>> RespondBody<B> {
    pub(super) fn inner(body: B, guard: Option<ResponseGuard>) -> Self {
        Self { content: Content::Inner { body, guard } }
    }

    pub(super) fn refusal(text: Bytes) -> Self {
        Self { content: Content::Refused { text: Some(text) } }
    }
}

impl<B: Body<Data = Bytes>> Body for RespondBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let (mut body, guard) = match self.project().content.project() {
            ContentProjection::Inner { body, guard } => (body, guard),
            ContentProjection::Refused { text } => {
                return Poll::Ready(text.take().map(Frame::data).map(Ok));
            }
        };
        let _inside = guard.as_ref().and_then(ResponseGuard::span).map(Span::entered);
        let frame = ready!(body.as_mut().poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) || body.is_end_stream() {
            *guard = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Inner { body, .. } => body.is_end_stream(),
            Content::Refused { text } => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Inner { body, .. } => body.size_hint(),
            Content::Refused { text } => {
                SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64)
            }
        }
    }
}

impl<B: Body<Data = Bytes>> fmt::Debug for RespondBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = matches!(self.content, Content::Refused { .. });
        f.debug_struct("RespondBody").field("refused", &refused).finish_non_exhaustive()
    }
}
