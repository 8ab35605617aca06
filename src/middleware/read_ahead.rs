use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A response body whose beginning has been buffered. It yields the buffered frames, trailers or
/// error first, and then polls the remaining body.
pub(super) struct ReadAhead<B: Body> {
    frames: VecDeque<Result<Frame<Bytes>, B::Error>>,
    /// The number of buffered bytes.
    held: usize,
    /// The remaining body. It is kept after its end until [`drop_ended_body`](Self::drop_ended_body).
    rest: Option<Pin<Box<B>>>,
    end: Option<End>,
}

/// The end of a body that was read completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// All frames were read.
    Whole,
    /// The last frame is an error.
    Broken,
}

impl<B: Body<Data = Bytes>> ReadAhead<B> {
    pub(super) fn new(body: B) -> Self {
        let end = body.is_end_stream().then_some(End::Whole);
        Self { frames: VecDeque::new(), held: 0, rest: Some(Box::pin(body)), end }
    }

    /// Buffers frames until enough is known, `max` bytes or [`MAX_FRAMES`] frames are held or the body has ended.
    /// Without `max`, nothing bounds what is buffered.
    pub(super) fn poll_ahead(
        &mut self,
        max: Option<usize>,
        is_known: impl Fn(&mut Self) -> bool,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let is_full = |ahead: &Self| max.is_some_and(|max| !ahead.has_capacity(max));
        while self.end.is_none() && !is_full(self) && !is_known(self) {
            if !ready!(self.poll_one(cx)) {
                break;
            }
        }
        Poll::Ready(())
    }

    /// Buffers a frame, or the end. Returns `false` if the body was dropped.
    fn poll_one(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(false) };
        let frame = ready!(rest.as_mut().poll_frame(cx));
        self.end = match &frame {
            None => Some(End::Whole),
            Some(Err(_)) => Some(End::Broken),
            Some(Ok(_)) => rest.is_end_stream().then_some(End::Whole),
        };
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        self.held += data.map_or(0, Bytes::len);
        self.frames.extend(frame);
        Poll::Ready(true)
    }

    fn has_capacity(&self, max: usize) -> bool {
        self.held < max && self.frames.len() < MAX_FRAMES
    }

    /// Returns the kind of end, if the body was read to its end.
    pub(super) fn end(&self) -> Option<End> {
        self.end
    }

    /// Returns the remaining body, unless it was dropped.
    pub(super) fn body(&mut self) -> Option<Pin<&mut B>> {
        self.rest.as_mut().map(Pin::as_mut)
    }

    /// Returns the buffered bytes, up to `max` of them.
    pub(super) fn beginning(&self, max: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(max.min(self.held));
        for data in self.frames.iter().flatten().filter_map(Frame::data_ref) {
            let remaining = max - text.len();
            text.extend_from_slice(&data[..remaining.min(data.len())]);
        }
        text
    }

    /// Drops a body that has ended, which releases its connection.
    pub(super) fn drop_ended_body(&mut self) {
        if self.end.is_some() {
            self.rest = None;
        }
    }
}

impl<B: Body<Data = Bytes>> Body for ReadAhead<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(frame) = self.frames.pop_front() {
            return Poll::Ready(Some(frame));
        }
        let ended = self.end.is_some();
        match &mut self.rest {
            Some(rest) if !ended => rest.as_mut().poll_frame(cx),
            _ => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        let ended = || self.end.is_some() || self.rest.as_ref().is_none_or(|r| r.is_end_stream());
        self.frames.is_empty() && ended()
    }

    fn size_hint(&self) -> SizeHint {
        let frames = self.frames.iter().flatten().filter_map(Frame::data_ref);
        let ahead = frames.map(|data| data.len() as u64).sum::<u64>();
        let rest = match (&self.rest, self.end) {
            (Some(rest), None) => rest.size_hint(),
            _ => SizeHint::with_exact(0),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(ahead.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            hint.set_upper(ahead.saturating_add(upper));
        }
        hint
    }
}

impl<B: Body> Unpin for ReadAhead<B> {}

/// The maximum number of buffered frames. Empty frames are not bounded by a number of bytes.
const MAX_FRAMES: usize = 1_024;
