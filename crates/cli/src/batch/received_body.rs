//! The body of a response that was received before the layer reads it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A received body: its bytes, followed by the error that cut it off, if one did.
#[derive(Debug, Default)]
pub(super) struct ReceivedBody {
    /// `None` once they were read, or if there are none.
    bytes: Option<Bytes>,
    error: Option<reqwest::Error>,
}

impl ReceivedBody {
    pub(super) fn new(bytes: Bytes, error: Option<reqwest::Error>) -> Self {
        Self { bytes: (!bytes.is_empty()).then_some(bytes), error }
    }
}

impl Body for ReceivedBody {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        let bytes = self.bytes.take().map(|bytes| Ok(Frame::data(bytes)));
        Poll::Ready(bytes.or_else(|| self.error.take().map(Err)))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none() && self.error.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = self.bytes.as_ref().map_or(0, Bytes::len) as u64;
        if self.error.is_some() { SizeHint::default() } else { SizeHint::with_exact(bytes) }
    }
}
