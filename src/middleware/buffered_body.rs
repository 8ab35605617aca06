use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::peek::{PeekBody, content_length};

/// A request body that [`BufferBodyLayer`](super::BufferBodyLayer) has buffered, completely or up to
/// its bound.
///
/// It yields the bytes, trailers and error of the original body in the original order. The buffered
/// bytes are one frame.
pub struct BufferedBody<B: Body> {
    ahead: Bytes,
    /// The frame after `ahead`: data that would have exceeded the bound, trailers, or an error.
    next: Option<Result<Frame<Bytes>, B::Error>>,
    rest: Option<B>,
    whole: bool,
    content_length: Option<u64>,
}

/// A body that is being read into a [`BufferedBody`].
pub(super) struct BodyBuffer<B: Body> {
    /// The first frame; moved into `joined` when a second frame arrives.
    first: Bytes,
    joined: BytesMut,
    rest: Option<B>,
    bound: usize,
    content_length: Option<u64>,
}

impl<B: Body<Data = Bytes> + Unpin> BodyBuffer<B> {
    /// Buffers up to `bound` bytes of `body`, or none if its size hint or the `content_length`
    /// exceeds `bound`.
    pub(super) fn new(body: B, bound: usize, content_length: Option<u64>) -> Self {
        let (first, joined) = (Bytes::new(), BytesMut::new());
        Self { first, joined, rest: Some(body), bound, content_length }
    }

    /// Polls for the buffered body. Must not be polled again after it has returned `Ready`.
    ///
    /// # Cancel safety
    /// Dropping `self` before it is ready drops the buffered bytes and the body.
    pub(super) fn poll_buffered(&mut self, cx: &mut Context<'_>) -> Poll<BufferedBody<B>> {
        if self.is_too_long() {
            return Poll::Ready(self.end(None, false));
        }
        while let Some(body) = &mut self.rest {
            let frame = match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(self.end(Some(Err(error)), false)),
                None => {
                    self.rest = None;
                    break;
                }
            };
            match frame.into_data() {
                Ok(data) if data.len() > self.bound - self.len() => {
                    return Poll::Ready(self.end(Some(Ok(Frame::data(data))), false));
                }
                Ok(data) => self.push(data),
                Err(trailers) => return Poll::Ready(self.end(Some(Ok(trailers)), true)),
            }
        }
        Poll::Ready(self.end(None, true))
    }

    fn is_too_long(&self) -> bool {
        let lower = self.rest.as_ref().map_or(0, |body| body.size_hint().lower());
        let bound = u64::try_from(self.bound).unwrap_or(u64::MAX);
        self.len() == 0 && lower.max(self.content_length.unwrap_or(0)) > bound
    }

    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn push(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        if self.joined.is_empty() {
            self.joined = BytesMut::from(std::mem::take(&mut self.first));
        }
        self.joined.extend_from_slice(&data);
    }

    fn end(
        &mut self,
        next: Option<Result<Frame<Bytes>, B::Error>>,
        whole: bool,
    ) -> BufferedBody<B> {
        let joined = std::mem::take(&mut self.joined);
        let first = std::mem::take(&mut self.first);
        let ahead = if joined.is_empty() { first } else { joined.freeze() };
        let rest = self.rest.take();
        BufferedBody { ahead, next, rest, whole, content_length: self.content_length }
    }
}

impl<B: Body<Data = Bytes> + Unpin> BufferedBody<B> {
    /// Buffers up to `bound` bytes of a body, as [`BufferBodyLayer`](super::BufferBodyLayer) does, for
    /// a caller that rejects longer bodies itself. If the `content-length` in `headers` exceeds the
    /// bound, nothing is read.
    ///
    /// # Cancel safety
    /// Dropping the future drops the buffered bytes and the body.
    pub async fn read(body: B, headers: &HeaderMap, bound: usize) -> Self {
        let mut buffer = BodyBuffer::new(body, bound, content_length(headers));
        poll_fn(|cx| buffer.poll_buffered(cx)).await
    }
}

impl<B: Body<Data = Bytes>> BufferedBody<B> {
    /// Returns `true` if the entire body was read within the bound and without an error.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns the error that ended the buffering, if reading the body failed.
    pub fn error(&self) -> Option<&B::Error> {
        self.next.as_ref()?.as_ref().err()
    }

    /// Returns the bounds of the number of remaining bytes.
    fn remaining(&self) -> SizeHint {
        let next = self.next.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        let ahead = (self.ahead.len() + next.map_or(0, Bytes::len)) as u64;
        let rest = self.rest.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let mut remaining = SizeHint::new();
        remaining.set_lower(ahead.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            remaining.set_upper(ahead.saturating_add(upper));
        }
        remaining
    }
}

impl<B: Body<Data = Bytes>> BufferedBody<B> {
    /// Keeps `guard` alive as long as any reference to the buffered bytes exists.
    #[doc(hidden)]
    #[must_use]
    pub fn held_with<T: Send + 'static>(mut self, guard: T) -> Self {
        if !self.ahead.is_empty() {
            self.ahead = Bytes::from_owner(GuardedBytes { bytes: self.ahead, _guard: guard });
        }
        self
    }
}

/// Bytes with a guard that is dropped with them.
struct GuardedBytes<T> {
    bytes: Bytes,
    _guard: T,
}

impl<T> AsRef<[u8]> for GuardedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<B: Body<Data = Bytes>> PeekBody for BufferedBody<B> {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(self.whole.then_some(&*self.ahead))
    }

    /// Returns the exact size by the size hint or the `content-length`, otherwise the lower bound.
    fn size(&self) -> Option<u64> {
        let remaining = self.remaining();
        remaining.exact().or(self.content_length).or(Some(remaining.lower()))
    }

    fn has_trailers(&self) -> bool {
        matches!(&self.next, Some(Ok(frame)) if frame.is_trailers())
    }

    /// Returns a copy if the body was read completely and has no trailers.
    fn replay(&self) -> Option<Self> {
        let whole = self.whole && self.next.is_none();
        whole.then(|| Self {
            ahead: self.ahead.clone(),
            next: None,
            rest: None,
            whole,
            content_length: self.content_length,
        })
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for BufferedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if !self.ahead.is_empty() {
            let ahead = std::mem::take(&mut self.ahead);
            return Poll::Ready(Some(Ok(Frame::data(ahead))));
        }
        if let Some(next) = self.next.take() {
            return Poll::Ready(Some(next));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        let ended = self.rest.as_ref().is_none_or(Body::is_end_stream);
        self.ahead.is_empty() && self.next.is_none() && ended
    }

    fn size_hint(&self) -> SizeHint {
        self.remaining()
    }
}

impl<B: Body> From<String> for BufferedBody<B> {
    /// Creates a body that is completely in memory.
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl<B: Body> From<Vec<u8>> for BufferedBody<B> {
    /// Creates a body that is completely in memory.
    fn from(bytes: Vec<u8>) -> Self {
        Self { ahead: bytes.into(), next: None, rest: None, whole: true, content_length: None }
    }
}

impl<B: Body> Unpin for BufferedBody<B> {}

impl<B: Body> fmt::Debug for BufferedBody<B> {
    /// Omits the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferedBody")
            .field("ahead", &self.ahead.len())
            .field("whole", &self.whole)
            .finish_non_exhaustive()
    }
}
