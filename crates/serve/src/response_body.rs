use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::activity::{FrameState, OpenRequest};

/// A response body that records in its connection's [`Activity`](super::activity::Activity) whether
/// frames are consumed.
#[derive(Debug)]
pub(super) struct ResponseBody {
    inner: Body,
    request: OpenRequest,
    /// The state of the last frame, for a response of several frames.
    frame_state: Option<Arc<FrameState>>,
}

impl ResponseBody {
    pub(super) fn new(inner: Body, request: OpenRequest) -> Self {
        Self { inner, request, frame_state: None }
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { inner, request, frame_state } = self.get_mut();
        if let Some(frame_state) = frame_state {
            frame_state.record_next_polled();
        }
        let polled = Pin::new(&mut *inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            // HTTP/2 may also buffer the last frame until the client opens its flow-control window.
            let is_large = || frame.data_ref().is_some_and(|data| data.len() > MAX_BUFFERED);
            if !inner.is_end_stream() || is_large() {
                request.record_frame_sent(frame_state);
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The length in bytes up to which a whole response may stay buffered for a client that does not read.
const MAX_BUFFERED: usize = 1_024;
