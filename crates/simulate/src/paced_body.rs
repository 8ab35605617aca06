//! A response body whose frames are spread over the latency.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};

/// A body with the same gap before each frame; the last one is sent at the end of the latency.
#[derive(Debug)]
pub(super) struct PacedBody {
    frames: std::vec::IntoIter<Bytes>,
    gap: Duration,
    next: Pin<Box<Sleep>>,
}

impl PacedBody {
    /// Creates a body. Must be called within a Tokio runtime, when the request arrives.
    pub(super) fn new(frames: Vec<Bytes>, latency: Duration) -> Self {
        let count = u32::try_from(frames.len()).unwrap_or(u32::MAX).max(1);
        let gap = latency / count;
        Self { frames: frames.into_iter(), gap, next: Box::pin(sleep(gap)) }
    }
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.frames.len() == 0 {
            return Poll::Ready(None);
        }
        // Skip the timer without latency: it would still cost a millisecond.
        if !self.gap.is_zero() {
            ready!(self.next.as_mut().poll(cx));
            let next = self.next.deadline() + self.gap;
            self.next.as_mut().reset(next);
        }
        Poll::Ready(self.frames.next().map(|frame| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.len() == 0
    }
}
