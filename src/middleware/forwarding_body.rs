use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http::response::Parts;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tracing::Span;

use super::actual_cost::ActualCost;
use super::reading::Reading;
use super::response_guard::ResponseGuard;
use crate::provider::{ApiError, Profile};

pin_project! {
    /// A body whose bytes are read by a [`Reading`] and forwarded unchanged.
    pub(super) struct ForwardingBody<B> {
        #[pin]
        inner: B,
        reading: Option<Reading>,
        // The error in the body of a successful response.
        error: Option<Box<ApiError>>,
        // `true` if that was its first event.
        begins_with_error: bool,
    }
}

impl<B: Body> ForwardingBody<B> {
    /// Reads the head of a response, and guards its reservation until the end of the body.
    ///
    /// An upgraded connection has no body and goes on: its reservation is held by the [`ActualCost`] in the
    /// extensions of the response.
    pub(super) fn of_response(
        parts: &mut Parts,
        inner: B,
        mut guard: ResponseGuard,
        profile: Profile,
    ) -> Self {
        let Parts { status, headers, extensions, .. } = parts;
        if *status == StatusCode::SWITCHING_PROTOCOLS {
            guard.read_head(profile, *status, headers);
            guard.on_accepted();
            ActualCost::in_extensions(extensions).hold(guard);
            return Self { inner, reading: None, error: None, begins_with_error: false };
        }
        // The caller may never poll an empty body, so that its reservation is settled here.
        let is_empty = guard.answers_head() || is_empty(&inner);
        if is_empty {
            drop(guard.head(profile, *status, headers));
            return Self { inner, reading: None, error: None, begins_with_error: false };
        }
        // Created in place, since it is large.
        let reading = Some(guard.head(profile, *status, headers));
        Self { inner, reading, error: None, begins_with_error: false }
    }

    /// Ends the reservation, even if the body hasn't ended.
    pub(super) fn end(self: Pin<&mut Self>) {
        let this = self.project();
        if let Some(reading) = this.reading {
            *this.begins_with_error = matches!(reading.first_event(), Some(Err(_)));
            *this.error = Reading::end(this.reading);
        }
    }

    /// Returns what the first event of a successful stream is: data, or an error; `None` before its end.
    pub(super) fn first_event(&self) -> Option<Result<(), &ApiError>> {
        match (&self.reading, &self.error) {
            (Some(reading), _) => reading.first_event(),
            (None, Some(error)) if self.begins_with_error => Some(Err(error)),
            (None, _) => Some(Ok(())),
        }
    }

    /// Returns the error in the body of a successful response, after the body has ended.
    pub(super) fn error(&self) -> Option<&ApiError> {
        self.error.as_deref()
    }
}

/// Returns whether a body has no bytes. A body behind a decoder says so only by its size.
pub(super) fn is_empty(body: &impl Body) -> bool {
    body.is_end_stream() || body.size_hint().exact() == Some(0)
}

impl<B: Body<Data = Bytes>> Body for ForwardingBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.as_mut().project();
        let _inside = this.reading.as_ref().and_then(Reading::span).map(Span::entered);
        let Poll::Ready(frame) = this.inner.as_mut().poll_frame(cx) else {
            if let Some(reading) = this.reading {
                reading.awaits_more();
            }
            return Poll::Pending;
        };
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        if let (Some(bytes), Some(reading)) = (data, &mut *this.reading) {
            reading.bytes(bytes);
        }
        let broken = matches!(frame, Some(Err(_)));
        let whole = frame.is_none() || (!broken && this.inner.is_end_stream());
        if let (true, Some(reading)) = (whole, &mut *this.reading) {
            reading.ended();
        }
        if let (true, Some(reading)) = (broken, &mut *this.reading) {
            reading.broken();
        }
        if whole || broken {
            self.end();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
