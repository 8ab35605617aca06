use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A response body whose beginning was looked at: its frames, trailers and error come out as they
/// came in, and then the rest as it comes.
pub(super) struct ReadAhead<B: Body> {
    frames: VecDeque<Result<Frame<Bytes>, B::Error>>,
    held: usize,
    /// What is still to come. Ended, it stays until the first frame is taken out.
    rest: Option<Pin<Box<B>>>,
    end: Option<End>,
}

/// How a body ended that was read as far as it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Broken,
}

impl<B: Body<Data = Bytes>> ReadAhead<B> {
    pub(super) fn new(body: B) -> Self {
        let end = body.is_end_stream().then_some(End::Whole);
        Self { frames: VecDeque::new(), held: 0, rest: Some(Box::pin(body)), end }
    }

    /// Ready once `most` bytes are held, or very many frames, or all there are; `None` holds all.
    pub(super) fn poll_ahead(&mut self, most: Option<usize>, cx: &mut Context<'_>) -> Poll<()> {
        while self.end.is_none() && most.is_none_or(|most| self.has_room(most)) {
            let Some(rest) = &mut self.rest else { break };
            let frame = ready!(rest.as_mut().poll_frame(cx));
            self.end = match &frame {
                None => Some(End::Whole),
                Some(Err(_)) => Some(End::Broken),
                Some(Ok(_)) => rest.is_end_stream().then_some(End::Whole),
            };
            let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
            self.held += data.map_or(0, Bytes::len);
            self.frames.extend(frame);
        }
        Poll::Ready(())
    }

    fn has_room(&self, most: usize) -> bool {
        self.held < most && self.frames.len() < MOST_FRAMES
    }

    /// How it ended, if it was read to its end.
    pub(super) fn end(&self) -> Option<End> {
        self.end
    }

    /// The body that is read.
    pub(super) fn body(&mut self) -> Option<Pin<&mut B>> {
        self.rest.as_mut().map(Pin::as_mut)
    }

    /// What was read, up to so many bytes.
    pub(super) fn beginning(&self, most: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(most.min(self.held));
        for data in self.frames.iter().flatten().filter_map(Frame::data_ref) {
            let room = most - text.len();
            text.extend_from_slice(&data[..room.min(data.len())]);
        }
        text
    }

    /// Lets go of a body that has ended, and of the connection below it.
    pub(super) fn let_go(&mut self) {
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

/// Frames may be empty, and then no number of bytes bounds them.
const MOST_FRAMES: usize = 1_024;
