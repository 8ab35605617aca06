use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::activity::{FrameState, OpenRequest};
use super::budget::BudgetPermit;

/// A response body that records in its connection's [`Activity`](super::activity::Activity) whether
/// frames are consumed, and counts as an HTTP/2 stream until they are sent.
#[derive(Debug)]
pub(super) struct ResponseBody {
    inner: Body,
    request: OpenRequest,
    /// The part of the budget of streams, over HTTP/2.
    permit: Option<Arc<BudgetPermit>>,
    /// The state of the last frame, for a response of several frames.
    frame_state: Option<Arc<FrameState>>,
}

impl ResponseBody {
    pub(super) fn new(inner: Body, request: OpenRequest, permit: Option<BudgetPermit>) -> Self {
        Self { inner, request, permit: permit.map(Arc::new), frame_state: None }
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { inner, request, permit, frame_state } = self.get_mut();
        if let Some(frame_state) = frame_state {
            frame_state.record_next_polled();
        }
        let mut polled = Pin::new(&mut *inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            // HTTP/2 may also buffer the last frame until the client opens its flow-control window.
            let is_large = || frame.data_ref().is_some_and(|data| data.len() > MAX_BUFFERED);
            if !inner.is_end_stream() || is_large() {
                request.record_frame_sent(frame_state);
            }
        }
        if let Some(permit) = permit {
            let held = |data| Bytes::from_owner(HeldData { data, _permit: Arc::clone(permit) });
            polled = polled.map_ok(|frame| frame.map_data(held));
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

/// Data that HTTP/2 may buffer after the body has ended.
struct HeldData {
    data: Bytes,
    _permit: Arc<BudgetPermit>,
}

impl AsRef<[u8]> for HeldData {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

/// The length in bytes up to which a whole response may stay buffered for a client that does not read.
const MAX_BUFFERED: usize = 1_024;
