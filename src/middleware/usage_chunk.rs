use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use memchr::memchr_iter;
use pin_project_lite::pin_project;
use serde::Deserialize;
use serde_json::value::RawValue;

pin_project! {
    /// A stream in OpenAI's format without its chunk of usage, for a client that hasn't asked for it: the event
    /// with a `usage` and without `choices` is left out. All other bytes are unchanged, such as the
    /// `"usage":null` that OpenAI adds to the other chunks.
    ///
    /// Bytes are forwarded as soon as their event has ended. After an event above 64 KiB, which no chunk of
    /// usage reaches, the rest of the stream is forwarded as it arrives.
    pub struct WithoutUsageChunk<B: Body> {
        #[pin]
        inner: B,
        // The beginning of an event that has not ended.
        partial: BytesMut,
        // Frames that follow bytes which were held back.
        next: VecDeque<Result<Frame<Bytes>, B::Error>>,
        is_filtering: bool,
    }
}

impl<B: Body<Data = Bytes>> WithoutUsageChunk<B> {
    /// Wraps the body of a stream.
    pub fn new(inner: B) -> Self {
        Self { inner, partial: BytesMut::new(), next: VecDeque::new(), is_filtering: true }
    }
}

impl<B: Body<Data = Bytes>> Body for WithoutUsageChunk<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        loop {
            if let Some(frame) = this.next.pop_front() {
                return Poll::Ready(Some(frame));
            }
            let frame = ready!(this.inner.as_mut().poll_frame(cx));
            let frame = match frame {
                Some(Ok(frame)) if *this.is_filtering => match frame.into_data() {
                    Ok(data) => {
                        let filtered = filter(this.partial, data);
                        this.next.extend(filtered.map(|bytes| Ok(Frame::data(bytes))));
                        if this.partial.len() > LONGEST_EVENT {
                            *this.is_filtering = false;
                            this.next.push_back(Ok(Frame::data(this.partial.split().freeze())));
                        }
                        continue;
                    }
                    Err(trailers) => Some(Ok(trailers)),
                },
                other => other,
            };
            // The end, trailers or an error: an event that has not ended is forwarded as it is.
            if this.partial.is_empty() {
                return Poll::Ready(frame);
            }
            this.next.extend(frame);
            return Poll::Ready(Some(Ok(Frame::data(this.partial.split().freeze()))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.partial.is_empty() && self.next.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // A chunk may be left out.
        SizeHint::default()
    }
}

impl<B: Body> fmt::Debug for WithoutUsageChunk<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithoutUsageChunk").finish_non_exhaustive()
    }
}

/// Returns the whole events among the bytes, without a chunk of usage. The beginning of the next event stays
/// in `partial`.
fn filter(partial: &mut BytesMut, data: Bytes) -> impl Iterator<Item = Bytes> + use<> {
    let mut events = if partial.is_empty() {
        data
    } else {
        partial.extend_from_slice(&data);
        partial.split().freeze()
    };
    // Nearly always one: all of the events.
    let (mut kept, mut checked) = ([Bytes::new(), Bytes::new()], 0);
    while let Some(length) = event_length(&events[checked..]) {
        if is_usage_chunk(&events[checked..checked + length]) {
            kept[0] = events.split_to(checked);
            drop(events.split_to(length));
            checked = 0;
        } else {
            checked += length;
        }
    }
    kept[1] = events.split_to(checked);
    partial.extend_from_slice(&events);
    kept.into_iter().filter(|bytes| !bytes.is_empty())
}

/// Returns the length of the first event with the empty line at its end, if it has ended.
fn event_length(bytes: &[u8]) -> Option<usize> {
    memchr_iter(b'\n', bytes).find_map(|at| match &bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

fn is_usage_chunk(event: &[u8]) -> bool {
    let Some(data) = event.trim_ascii().strip_prefix(b"data:") else { return false };
    let is_candidate = memchr::memmem::find(data, b"_tokens\"").is_some();
    is_candidate && serde_json::from_slice(data).is_ok_and(|chunk: Chunk<'_>| chunk.is_usage())
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: &'a RawValue,
    #[serde(borrow)]
    usage: &'a RawValue,
}

impl Chunk<'_> {
    fn is_usage(&self) -> bool {
        let choices = self.choices.get().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        choices.is_some_and(|choices| choices.trim().is_empty())
            && self.usage.get().starts_with('{')
    }
}

const LONGEST_EVENT: usize = 64 * 1_024;
