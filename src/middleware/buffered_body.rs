use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::peek::{PeekBody, stated_size};

/// A request body that was read ahead, by [`BufferBodyLayer`](super::BufferBodyLayer): whole, or
/// as far as the bound goes, and the rest of it.
///
/// Its bytes, its trailers and its error are those of the body that it was made of, in their order.
/// What was read ahead is one frame.
pub struct BufferedBody<B: Body> {
    ahead: Bytes,
    /// The frame after `ahead`: one that would have gone over the bound, trailers, or an error.
    next: Option<Result<Frame<Bytes>, B::Error>>,
    rest: Option<B>,
    whole: bool,
    stated: Option<u64>,
}

/// A body on its way to be a [`BufferedBody`].
pub(super) struct Buffering<B: Body> {
    /// The first frame, as it came; joined with others only when there are any.
    first: Bytes,
    joined: BytesMut,
    rest: Option<B>,
    bound: usize,
    stated: Option<u64>,
}

impl<B: Body<Data = Bytes> + Unpin> Buffering<B> {
    /// Reads up to `bound` bytes of `body` ahead; none at all of a body that is known to have more,
    /// by itself or by what its headers have `stated`.
    pub(super) fn new(body: B, bound: usize, stated: Option<u64>) -> Self {
        let (first, joined) = (Bytes::new(), BytesMut::new());
        Self { first, joined, rest: Some(body), bound, stated }
    }

    /// # Cancel safety
    /// Dropped before it is ready, it drops what it has read, and the rest.
    ///
    /// Ready once.
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
        let sure = self.rest.as_ref().map_or(0, |body| body.size_hint().lower());
        let bound = u64::try_from(self.bound).unwrap_or(u64::MAX);
        self.len() == 0 && sure.max(self.stated.unwrap_or(0)) > bound
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
        BufferedBody { ahead, next, rest, whole, stated: self.stated }
    }
}

impl<B: Body<Data = Bytes> + Unpin> BufferedBody<B> {
    /// Reads up to `bound` bytes of a body ahead, as the layer does, for who answers a longer one
    /// itself: nothing of one that these headers of its request say to be longer.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it drops what it has read, and the rest.
    pub async fn read(body: B, headers: &HeaderMap, bound: usize) -> Self {
        let mut buffering = Buffering::new(body, bound, stated_size(headers));
        poll_fn(|cx| buffering.poll_buffered(cx)).await
    }
}

impl<B: Body<Data = Bytes>> BufferedBody<B> {
    /// Whether all its bytes were read, within the bound and without an error.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// What came in the place of its next bytes, if reading it failed.
    pub fn error(&self) -> Option<&B::Error> {
        self.next.as_ref()?.as_ref().err()
    }

    /// How many bytes are still to come, as far as that is known.
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
    /// Keeps this for as long as anybody keeps the bytes that were read ahead.
    #[doc(hidden)]
    #[must_use]
    pub fn held_with<T: Send + 'static>(mut self, with: T) -> Self {
        if !self.ahead.is_empty() {
            self.ahead = Bytes::from_owner(Held { bytes: self.ahead, _with: with });
        }
        self
    }
}

/// Bytes, and what is kept as long as they are.
struct Held<T> {
    bytes: Bytes,
    _with: T,
}

impl<T> AsRef<[u8]> for Held<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<B: Body<Data = Bytes>> PeekBody for BufferedBody<B> {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(self.whole.then_some(&*self.ahead))
    }

    /// What the body or its `content-length` says; where neither does, as much as is known to come.
    fn size(&self) -> Option<u64> {
        let remaining = self.remaining();
        remaining.exact().or(self.stated).or(Some(remaining.lower()))
    }

    fn has_trailers(&self) -> bool {
        matches!(&self.next, Some(Ok(frame)) if frame.is_trailers())
    }

    /// One that was read whole, without trailers.
    fn replay(&self) -> Option<Self> {
        let whole = self.whole && self.next.is_none();
        whole.then(|| Self {
            ahead: self.ahead.clone(),
            next: None,
            rest: None,
            whole,
            stated: self.stated,
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
    /// A body that was read whole.
    fn from(text: String) -> Self {
        Self { ahead: text.into(), next: None, rest: None, whole: true, stated: None }
    }
}

impl<B: Body> Unpin for BufferedBody<B> {}

impl<B: Body> fmt::Debug for BufferedBody<B> {
    /// Without its bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferedBody")
            .field("ahead", &self.ahead.len())
            .field("whole", &self.whole)
            .finish_non_exhaustive()
    }
}
