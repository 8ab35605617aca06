//! Inner services and bodies for the tests: a service that must be made ready, and a body of given
//! frames.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Body, Frame, SizeHint};
use tower::Service;

/// The error of the services and bodies in this file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InnerError;

impl fmt::Display for InnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("oops")
    }
}

impl std::error::Error for InnerError {}

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, InnerError>> + Send>>;
type Ready = dyn Fn() -> Poll<Result<(), InnerError>> + Send + Sync;

/// A service that panics if it is called without having been polled ready before.
pub(super) struct Strict<R, T> {
    answer: Arc<dyn Fn(R) -> Answer<T> + Send + Sync>,
    readiness: Arc<Ready>,
    ready: bool,
    pub(super) clones: Arc<AtomicUsize>,
    pub(super) calls: Arc<AtomicUsize>,
}

impl<R, T> Strict<R, T> {
    pub(super) fn new<F>(answer: impl Fn(R) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<T, InnerError>> + Send + 'static,
    {
        Self {
            answer: Arc::new(move |request| Box::pin(answer(request))),
            readiness: Arc::new(|| Poll::Ready(Ok(()))),
            ready: false,
            clones: Arc::default(),
            calls: Arc::default(),
        }
    }

    /// Sets the result of `poll_ready`; `Pending` wakes the task immediately.
    pub(super) fn with_readiness(
        mut self,
        readiness: impl Fn() -> Poll<Result<(), InnerError>> + Send + Sync + 'static,
    ) -> Self {
        self.readiness = Arc::new(readiness);
        self
    }
}

impl<R, T> Clone for Strict<R, T> {
    fn clone(&self) -> Self {
        self.clones.fetch_add(1, Ordering::Relaxed);
        let (answer, readiness) = (Arc::clone(&self.answer), Arc::clone(&self.readiness));
        let (clones, calls) = (Arc::clone(&self.clones), Arc::clone(&self.calls));
        Self { answer, readiness, ready: false, clones, calls }
    }
}

impl<R, T> Service<R> for Strict<R, T> {
    type Response = T;
    type Error = InnerError;
    type Future = Answer<T>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), InnerError>> {
        let ready = (self.readiness)();
        if ready.is_pending() {
            cx.waker().wake_by_ref();
        }
        self.ready = matches!(ready, Poll::Ready(Ok(())));
        ready
    }

    fn call(&mut self, request: R) -> Answer<T> {
        assert!(std::mem::take(&mut self.ready), "called without having been polled ready");
        self.calls.fetch_add(1, Ordering::Relaxed);
        (self.answer)(request)
    }
}

/// A body of given frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    frames: VecDeque<Poll<Result<Frame<Bytes>, InnerError>>>,
    has_known_end: bool,
    hangs: bool,
}

impl Frames {
    pub(super) fn data(mut self, data: impl Into<Bytes>) -> Self {
        self.frames.push_back(Poll::Ready(Ok(Frame::data(data.into()))));
        self
    }

    pub(super) fn trailers(mut self, trailers: HeaderMap) -> Self {
        self.frames.push_back(Poll::Ready(Ok(Frame::trailers(trailers))));
        self
    }

    pub(super) fn error(mut self) -> Self {
        self.frames.push_back(Poll::Ready(Err(InnerError)));
        self
    }

    /// Makes the body pending once.
    pub(super) fn pause(mut self) -> Self {
        self.frames.push_back(Poll::Pending);
        self
    }

    /// Makes the body wait for ever after its frames.
    pub(super) fn hang(mut self) -> Self {
        self.hangs = true;
        self
    }

    /// Makes the body report its end and its exact size.
    pub(super) fn with_known_end(mut self) -> Self {
        self.has_known_end = true;
        self
    }

    pub(super) fn into_response(self) -> Response<Self> {
        Response::new(self)
    }
}

impl From<&'static str> for Frames {
    fn from(text: &'static str) -> Self {
        Self::default().data(text)
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = InnerError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, InnerError>>> {
        match self.frames.pop_front() {
            Some(frame) => {
                if frame.is_pending() {
                    cx.waker().wake_by_ref();
                }
                frame.map(Some)
            }
            None if self.hangs => Poll::Pending,
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.has_known_end && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if !self.has_known_end {
            return SizeHint::default();
        }
        let ready = |frame: &Poll<Result<Frame<Bytes>, InnerError>>| match frame {
            Poll::Ready(Ok(frame)) => frame.data_ref().map(Bytes::len),
            _ => None,
        };
        let sizes = self.frames.iter().filter_map(ready);
        SizeHint::with_exact(sizes.sum::<usize>() as u64)
    }
}

/// Counts wake-ups.
#[derive(Debug, Default)]
pub(super) struct WakeCounter(AtomicUsize);

impl WakeCounter {
    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        Arc::clone(self).into()
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
