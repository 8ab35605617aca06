use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::activity::{Open, Piece};

/// The body of an answer, unchanged: its connection knows whether it is taken.
#[derive(Debug)]
pub(super) struct AnswerBody {
    inner: Body,
    open: Open,
    /// The piece that was handed out last, of an answer of several.
    piece: Option<Arc<Piece>>,
}

impl AnswerBody {
    pub(super) fn new(inner: Body, open: Open) -> Self {
        Self { inner, open, piece: None }
    }
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { inner, open, piece } = self.get_mut();
        if let Some(piece) = piece {
            piece.taken();
        }
        let polled = Pin::new(&mut *inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            // HTTP/2 may keep the last one too until its client makes room.
            let is_long = || frame.data_ref().is_some_and(|data| data.len() > SHORT);
            if !inner.is_end_stream() || is_long() {
                open.handed(piece);
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

/// In bytes: an answer that is no longer may be kept for who takes nothing of it.
const SHORT: usize = 1_024;
