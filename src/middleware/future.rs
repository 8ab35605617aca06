use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tower_service::Service;
use tracing::Span;

use super::classify::Classified;
use super::error::{BoxError, Failure, RateLimitError};
use super::journey::Facts;
use super::keys::Key;
use super::layer::Settings;
use super::observe::Observe;
use super::record::{OTHER, Record};
use super::watch::Watch;
use crate::limiter::{Acquire, AcquireError, Permit};

pin_project! {
    /// The future of [`RateLimitService`](super::RateLimitService).
    ///
    /// # Cancel safety
    /// Dropped while it waits, it leaves the queue and takes nothing. Dropped once the inner service's
    /// future has been polled, the request counts as sent. Kept but not polled while it waits, it holds
    /// up those behind it, as in any queue.
    pub struct ResponseFuture<S, Request, C, O>
    where
        S: Service<Request>,
    {
        #[pin]
        stage: Stage<S::Future>,
        // What is to be sent, and through what: a clone that has yet to become ready.
        unsent: Option<(S, Request)>,
        pub(super) classified: Classified,
        arrived: Option<u64>,
        // Until it is let in.
        record: Option<Box<Record>>,
        pub(super) shared: Arc<Settings<C, O>>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<F> {
        // In the queue. The readiness of the service that was called was given back.
        Waiting { acquire: Acquire },
        // Let in; the clone becomes ready.
        Readying { watch: Option<Watch> },
        // On its way.
        Sent { watch: Option<Watch>, #[pin] future: F },
        Failed { error: Option<AcquireError> },
    }
}

/// How a request was answered, with the guard of its reservation; or how it failed.
pub(super) type Answered<S, Request> =
    Result<(<S as Service<Request>>::Response, Watch), Failure<<S as Service<Request>>::Error>>;

/// Where a request stands once it has arrived.
pub(super) enum Arrived {
    Granted(Permit),
    /// In a box: nearly every request is granted at once.
    Queued(Box<Acquire>),
}

impl<S, Request, C, O> ResponseFuture<S, Request, C, O>
where
    S: Service<Request> + Clone,
{
    /// `inner` is ready, and the request was let in.
    pub(super) fn admitted(
        (permit, record): (Permit, Option<Box<Record>>),
        inner: &mut S,
        request: Request,
        mut classified: Classified,
        shared: Arc<Settings<C, O>>,
    ) -> Self {
        let watch = admit(&shared, &mut classified, None, permit).recorded(record);
        let _inside = watch.span().map(Span::entered);
        let stage = Stage::Sent { watch: Some(watch), future: inner.call(request) };
        Self { stage, unsent: None, classified, arrived: None, record: None, shared }
    }

    /// `inner` is ready. A request that is let in at once is sent through it; otherwise its
    /// readiness is given back, so that others don't wait for this one.
    pub(super) fn new(
        (mut acquire, mut record): (Acquire, Option<Box<Record>>),
        inner: &mut S,
        request: Request,
        classified: Classified,
        shared: Arc<Settings<C, O>>,
    ) -> Self {
        let arrived = classified.journey.as_ref().map(|_| shared.limiter.now());
        let mut unsent = None;
        let inside = record.as_ref().map(|record| record.span().entered());
        let arrival = acquire.arrive();
        drop(inside);
        let stage = match arrival {
            Some(Ok(permit)) => {
                let granted = (permit, record);
                return Self::admitted(granted, inner, request, classified, shared);
            }
            Some(Err(error)) => {
                record.iter_mut().for_each(|record| record.refused(&error));
                *inner = inner.clone();
                Stage::Failed { error: Some(error) }
            }
            None => {
                *inner = inner.clone();
                unsent = Some((inner.clone(), request));
                Stage::Waiting { acquire }
            }
        };
        Self { stage, unsent, classified, arrived, record, shared }
    }
}

impl<S: Service<Request>, Request, C, O> ResponseFuture<S, Request, C, O> {
    /// A request that has arrived, and what it goes through: a clone that has yet to become ready.
    pub(super) fn arrived(
        arrived: Arrived,
        (inner, request): (S, Request),
        mut classified: Classified,
        shared: Arc<Settings<C, O>>,
    ) -> Self {
        let arrived_at = classified.journey.as_ref().map(|_| shared.limiter.now());
        let mut record = Record::begin(&shared.limiter, &classified);
        let stage = match arrived {
            Arrived::Granted(permit) => {
                let watch = admit(&shared, &mut classified, arrived_at, permit);
                Stage::Readying { watch: Some(watch.recorded(record.take())) }
            }
            Arrived::Queued(acquire) => Stage::Waiting { acquire: *acquire },
        };
        let unsent = Some((inner, request));
        Self { stage, unsent, classified, arrived: arrived_at, record, shared }
    }
}

impl<S, Request, C, O> ResponseFuture<S, Request, C, O>
where
    S: Service<Request> + Clone,
    S::Error: 'static,
    O: Observe<S::Response>,
{
    /// The same as `poll`, with the inner service's error as it is.
    pub(super) fn poll_ended(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<O::Observed, Failure<S::Error>>> {
        let (response, watch) = ready!(self.as_mut().poll_answered(cx))?;
        Poll::Ready(Ok(self.shared.observe.observe(response, watch)))
    }

    /// The same, with the response as it came, and the guard of its reservation.
    pub(super) fn poll_answered(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Answered<S, Request>> {
        let mut this = self.project();
        let _inside = this.stage.as_ref().get_ref().span(this.record).map(Span::entered);
        loop {
            let next = match this.stage.as_mut().project() {
                StageProjection::Waiting { acquire } => match ready!(Pin::new(acquire).poll(cx)) {
                    Ok(permit) => {
                        let watch = admit(this.shared, this.classified, *this.arrived, permit);
                        Stage::Readying { watch: Some(watch.recorded(this.record.take())) }
                    }
                    Err(error) => {
                        this.record.iter_mut().for_each(|record| record.refused(&error));
                        Stage::Failed { error: Some(error) }
                    }
                },
                StageProjection::Readying { watch } => {
                    let (inner, _) = this.unsent.as_mut().expect(POLLED_AGAIN);
                    let ready = ready!(inner.poll_ready(cx));
                    // From here on held by this call: an error or a panic releases it.
                    let mut watch = watch.take();
                    if let (Err(_), Some(watch)) = (&ready, &mut watch) {
                        watch.failed(OTHER);
                    }
                    let (mut inner, request) = this.unsent.take().expect(POLLED_AGAIN);
                    ready.map_err(Failure::Inner)?;
                    Stage::Sent { watch, future: inner.call(request) }
                }
                StageProjection::Sent { watch, future } => {
                    watch.as_mut().expect(POLLED_AGAIN).sent();
                    let result = ready!(future.poll(cx));
                    let watch = watch.take().expect(POLLED_AGAIN);
                    return Poll::Ready(end(&this.shared.observe, watch, result));
                }
                StageProjection::Failed { error } => {
                    let error = error.take().expect(POLLED_AGAIN);
                    drop(this.record.take());
                    return Poll::Ready(Err(Failure::Limited(error)));
                }
            };
            this.stage.set(next);
        }
    }
}

impl<F> Stage<F> {
    /// The span of the request, if it has one.
    fn span(&self, record: &Option<Box<Record>>) -> Option<Span> {
        match self {
            Self::Waiting { .. } | Self::Failed { .. } => {
                record.as_ref().map(|record| record.span())
            }
            Self::Readying { watch } | Self::Sent { watch, .. } => {
                watch.as_ref().and_then(Watch::span)
            }
        }
    }
}

impl<S, Request, C, O> Future for ResponseFuture<S, Request, C, O>
where
    S: Service<Request> + Clone,
    S::Error: Into<BoxError> + 'static,
    O: Observe<S::Response>,
{
    type Output = Result<O::Observed, RateLimitError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_ended(cx).map_err(RateLimitError::from)
    }
}

impl<S: Service<Request>, Request, C, O> fmt::Debug for ResponseFuture<S, Request, C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Waiting { .. } => "waiting",
            Stage::Readying { .. } => "readying",
            Stage::Sent { .. } => "sent",
            Stage::Failed { .. } => "failed",
        };
        f.debug_struct("ResponseFuture")
            .field("stage", &stage)
            .field("cost", &self.classified.cost)
            .finish_non_exhaustive()
    }
}

/// The request was let in: from here on its reservation has a guard.
fn admit<C, O>(
    shared: &Settings<C, O>,
    classified: &mut Classified,
    arrived: Option<u64>,
    permit: Permit,
) -> Watch {
    let (keys, journey) = (std::mem::take(&mut classified.keys), classified.journey.take());
    if let Some(journey) = &journey {
        let granted_at = permit.granted_at();
        let waited = granted_at.saturating_sub(arrived.unwrap_or(granted_at));
        journey.write(|facts| {
            *facts = Facts {
                key: keys.first().cloned().map(Key::into_text).unwrap_or_default(),
                reserved: Some(permit.cost().clone()),
                granted_at: Some(granted_at),
                waited: Duration::from_nanos(waited),
                earlier: std::mem::take(&mut facts.earlier),
                ..Facts::default()
            };
        });
    }
    Watch::new(permit, shared.limiter.clone(), keys, shared.options.discover, journey)
        .on(classified.terms)
        .learning(classified.guesses_output())
}

/// Hands the reservation over with the response, or ends it with the error.
fn end<O, Response, E>(
    observe: &O,
    mut watch: Watch,
    result: Result<Response, E>,
) -> Result<(Response, Watch), Failure<E>>
where
    E: 'static,
    O: Observe<Response>,
{
    match result {
        Ok(response) => {
            watch.answered();
            Ok((response, watch))
        }
        Err(error) => {
            match observe.never_left(&error) {
                true => watch.never_left(),
                false => watch.failed(OTHER),
            }
            Err(Failure::Inner(error))
        }
    }
}

const POLLED_AGAIN: &str = "a response future was polled after it had ended";
