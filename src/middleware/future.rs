use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_service::Service;
use tracing::Span;

use super::classify::Classified;
use super::error::{BoxError, Failure, RateLimitError, RefusedRequest};
use super::observe::Observe;
use super::queue_slots::QueueSlot;
use super::record::{OTHER, Record};
use super::response_guard::ResponseGuard;
use super::settings::Settings;
use crate::Timestamp;
use crate::limiter::{Acquire, AcquireError, Permit};
use paceline_limiter::seam;

pin_project! {
    /// The future of [`RateLimitService`](super::RateLimitService).
    ///
    /// # Cancel safety
    /// Dropping the future while it waits removes the request from the queue without consuming quota.
    /// Once the inner service's future has been polled, the request counts as sent. Requests behind a waiting
    /// future that is kept but not polled pass it after about a second.
    ///
    /// # Panics
    /// A poll panics if the request has to wait for a time outside a tokio runtime with timers.
    pub struct ResponseFuture<S, Request, C, O>
    where
        S: Service<Request>,
    {
        // The guard of the reservation, once the request has one.
        guard: Option<ResponseGuard>,
        #[pin]
        state: State<S, Request, S::Future>,
        pub(super) shared: Arc<Settings<C, O>>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, Request, F> {
        // The inner service was called. Nearly every future starts in this state.
        Sent { #[pin] future: F },
        // The request waits in the queue; the readiness of the called service was released.
        Waiting { waiting: Option<Box<QueuedRequest<S, Request>>> },
        // The request was admitted; a clone of the inner service is not ready yet.
        Readying { unsent: Option<Box<(S, Request)>> },
        // The limiter refused the request.
        Refused { refused: Option<Box<RefusedRequest>>, record: Option<Box<Record>> },
    }
}

/// A request in the queue. It is boxed to keep the future of an immediately admitted request small.
struct QueuedRequest<S, Request> {
    acquire: Acquire,
    inner: S,
    request: Request,
    classified: Classified,
    /// The time of arrival, if the request has a journey.
    arrived: Option<Timestamp>,
    record: Option<Box<Record>>,
    slot: Option<QueueSlot>,
}

/// The outcome for a request that arrived at the limiter and wasn't refused.
pub(super) enum Arrival {
    Granted(Permit),
    /// Boxed, since nearly every request is granted immediately.
    Queued(Box<Acquire>),
}

/// The response to a request with the guard of its reservation, or its failure.
pub(super) type GuardedResponse<S, Request> = Result<
    (<S as Service<Request>>::Response, ResponseGuard),
    Failure<<S as Service<Request>>::Error>,
>;

impl<S: Service<Request>, Request, C, O> ResponseFuture<S, Request, C, O> {
    /// Sends an admitted request through `inner`, which is ready.
    #[inline]
    pub(super) fn send(
        permit: Permit,
        classified: &mut Classified,
        record: Option<Box<Record>>,
        inner: &mut S,
        request: Request,
        shared: Arc<Settings<C, O>>,
    ) -> Self {
        let guard = ResponseGuard::new(permit, classified, record, None);
        // A panic here releases the reservation, since the request was not sent.
        let future = match guard.span() {
            Some(span) => span.in_scope(|| inner.call(request)),
            None => inner.call(request),
        };
        Self { guard: Some(guard), state: State::Sent { future }, shared }
    }

    /// Continues a request after its arrival; `inner` is not ready yet.
    pub(super) fn from_arrival(
        arrival: Arrival,
        inner: S,
        request: Request,
        mut classified: Classified,
        shared: Arc<Settings<C, O>>,
    ) -> Self {
        let arrived_at = classified.journey.as_ref().map(|_| shared.limiter.now());
        let record = Record::start(&shared.limiter, &classified);
        match arrival {
            Arrival::Granted(permit) => {
                let guard = Some(ResponseGuard::new(permit, &mut classified, record, arrived_at));
                let state = State::Readying { unsent: Some(Box::new((inner, request))) };
                Self { state, guard, shared }
            }
            Arrival::Queued(acquire) => {
                let (acquire, arrived) = (*acquire, arrived_at);
                let slot = shared.slots.take();
                let waiting =
                    QueuedRequest { acquire, inner, request, classified, arrived, record, slot };
                let state = State::Waiting { waiting: Some(Box::new(waiting)) };
                Self { state, guard: None, shared }
            }
        }
    }
}

impl<S, Request, C, O> ResponseFuture<S, Request, C, O>
where
    S: Service<Request> + Clone,
{
    /// Sends a request that is admitted immediately through `inner`, which is ready, or queues it. If the
    /// request isn't sent, the readiness is released, so that other requests can use it.
    pub(super) fn arrive(
        mut acquire: Acquire,
        inner: &mut S,
        request: Request,
        mut classified: Classified,
        mut record: Option<Box<Record>>,
        shared: Arc<Settings<C, O>>,
    ) -> Self {
        let arrived = classified.journey.as_ref().map(|_| shared.limiter.now());
        let inside = record.as_ref().map(|record| record.span().entered());
        let arrival = seam::arrive_after_try(&mut acquire);
        drop(inside);
        let state = match arrival {
            Some(Ok(permit)) => {
                return Self::send(permit, &mut classified, record, inner, request, shared);
            }
            Some(Err(error)) => {
                record.iter_mut().for_each(|record| record.on_refused(&error));
                *inner = inner.clone();
                State::refused(error, classified, record)
            }
            None => {
                *inner = inner.clone();
                let (inner, slot) = (inner.clone(), shared.slots.take());
                let waiting =
                    QueuedRequest { acquire, inner, request, classified, arrived, record, slot };
                State::Waiting { waiting: Some(Box::new(waiting)) }
            }
        };
        Self { state, guard: None, shared }
    }
}

impl<S, Request, C, O> ResponseFuture<S, Request, C, O>
where
    S: Service<Request> + Clone,
    S::Error: 'static,
    O: Observe<S::Response>,
{
    /// Polls for the observed response, without boxing the inner service's error.
    #[inline]
    pub(super) fn poll_observed(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<O::Observed, Failure<S::Error>>> {
        self.poll_with(cx, |observe, response, guard| observe.observe(response, guard))
    }

    /// Polls for the unobserved response and the guard of its reservation.
    pub(super) fn poll_guarded(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<GuardedResponse<S, Request>> {
        self.poll_with(cx, |_, response, guard| (response, guard))
    }

    #[inline]
    fn poll_with<T>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        observed: impl FnOnce(&O, S::Response, ResponseGuard) -> T,
    ) -> Poll<Result<T, Failure<S::Error>>> {
        let mut this = self.project();
        let _inside = span(&this.state, this.guard.as_ref()).map(Span::entered);
        loop {
            let next = match this.state.as_mut().project() {
                StateProjection::Sent { future } => {
                    let guard = this.guard.as_mut().expect(POLLED_AGAIN);
                    guard.mark_sent();
                    let observe = &this.shared.observe;
                    return Poll::Ready(match ready!(future.poll(cx)) {
                        Ok(response) => {
                            guard.on_response();
                            if O::KEEPS_GUARD {
                                guard.keep_limiter(&this.shared.limiter);
                            }
                            let guard = this.guard.take().expect(POLLED_AGAIN);
                            Ok(observed(observe, response, guard))
                        }
                        Err(error) => {
                            guard.on_inner_error(observe.is_unsent(&error));
                            if guard.waits_for_server()
                                && let Some(failure) = observe.server_failure(&error)
                            {
                                guard.keep_limiter(&this.shared.limiter);
                                guard.report_failure(failure);
                            }
                            *this.guard = None;
                            Err(Failure::Inner(error))
                        }
                    });
                }
                StateProjection::Waiting { waiting } => {
                    let queued = waiting.as_mut().expect(POLLED_AGAIN);
                    if let Some(slot) = &queued.slot {
                        slot.on_polled(cx.waker());
                    }
                    let acquire = &mut queued.acquire;
                    let result = ready!(Pin::new(acquire).poll(cx));
                    let waiting = waiting.take().expect(POLLED_AGAIN);
                    waiting.ended(result, this.guard)
                }
                StateProjection::Readying { unsent } => {
                    let (inner, _) = &mut **unsent.as_mut().expect(POLLED_AGAIN);
                    let ready = ready!(inner.poll_ready(cx));
                    let (mut inner, request) = *unsent.take().expect(POLLED_AGAIN);
                    // While this call holds the reservation, an error or a panic releases it.
                    let mut guard = this.guard.take().expect(POLLED_AGAIN);
                    if let Err(error) = ready {
                        guard.on_error(OTHER);
                        return Poll::Ready(Err(Failure::Inner(error)));
                    }
                    let future = inner.call(request);
                    *this.guard = Some(guard);
                    State::Sent { future }
                }
                StateProjection::Refused { refused, record } => {
                    drop(record.take());
                    let refused = refused.take().expect(POLLED_AGAIN);
                    return Poll::Ready(Err(Failure::Limited(refused)));
                }
            };
            this.state.set(next);
        }
    }
}

impl<S, Request> QueuedRequest<S, Request> {
    /// Returns the next state of a request that was admitted or refused.
    fn ended<F>(
        self,
        result: Result<Permit, AcquireError>,
        guard: &mut Option<ResponseGuard>,
    ) -> State<S, Request, F> {
        let Self { acquire, inner, request, mut classified, arrived, mut record, slot } = self;
        drop((acquire, slot));
        match result {
            Ok(permit) => {
                *guard = Some(ResponseGuard::new(permit, &mut classified, record, arrived));
                State::Readying { unsent: Some(Box::new((inner, request))) }
            }
            Err(error) => {
                record.iter_mut().for_each(|record| record.on_refused(&error));
                State::refused(error, classified, record)
            }
        }
    }
}

impl<S, Request, F> State<S, Request, F> {
    fn refused(error: AcquireError, classified: Classified, record: Option<Box<Record>>) -> Self {
        let Classified { keys, cost, .. } = classified;
        Self::Refused { refused: Some(Box::new(RefusedRequest { error, keys, cost })), record }
    }

    /// Returns the record of a request that has no reservation.
    fn record(&self) -> Option<&Record> {
        match self {
            Self::Waiting { waiting } => waiting.as_ref()?.record.as_deref(),
            Self::Refused { record, .. } => record.as_deref(),
            Self::Sent { .. } | Self::Readying { .. } => None,
        }
    }
}

/// Returns the span of a request in this state, if it has one.
#[inline]
fn span<S, Request, F>(
    state: &State<S, Request, F>,
    guard: Option<&ResponseGuard>,
) -> Option<Span> {
    match guard {
        Some(guard) => guard.span(),
        None => state.record().map(Record::span),
    }
}

impl<S, Request, C, O> Future for ResponseFuture<S, Request, C, O>
where
    S: Service<Request> + Clone,
    S::Error: Into<BoxError> + 'static,
    O: Observe<S::Response>,
{
    type Output = Result<O::Observed, RateLimitError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_observed(cx).map_err(RateLimitError::from)
    }
}

impl<S: Service<Request>, Request, C, O> fmt::Debug for ResponseFuture<S, Request, C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Sent { .. } => "sent",
            State::Waiting { .. } => "waiting",
            State::Readying { .. } => "readying",
            State::Refused { .. } => "refused",
        };
        f.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}

const POLLED_AGAIN: &str = "`ResponseFuture` polled after completion";
