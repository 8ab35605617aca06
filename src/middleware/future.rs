use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project::pin_project;
use tower_service::Service;

use super::classify::Classified;
use super::error::{BoxError, Failure, RateLimitError};
use super::journey::Facts;
use super::keys::Key;
use super::layer::Settings;
use super::observe::Observe;
use super::watch::Watch;
use crate::limiter::{Acquire, AcquireError, Permit};

/// The future of [`RateLimitService`](super::RateLimitService).
///
/// # Cancel safety
/// Dropped while it waits, it leaves the queue and takes nothing. Dropped once the inner service's
/// future has been polled, the request counts as sent. Kept but not polled while it waits, it holds
/// up those behind it, as in any queue.
#[pin_project]
pub struct ResponseFuture<S: Service<Request>, Request, C, O> {
    #[pin]
    stage: Stage<S::Future>,
    /// What is to be sent, and through what: a clone that has yet to become ready.
    unsent: Option<(S, Request)>,
    pub(super) classified: Classified,
    arrived: Option<u64>,
    pub(super) shared: Arc<Settings<C, O>>,
}

#[pin_project(project = StageProjection)]
enum Stage<F> {
    /// In the queue. The readiness of the service that was called was given back.
    Waiting(Acquire),
    /// Let in; the clone becomes ready.
    Readying(Option<Watch>),
    /// On its way.
    Sent(Option<Watch>, #[pin] F),
    Failed(Option<AcquireError>),
}

/// How a request was answered, with the guard of its reservation; or how it failed.
pub(super) type Answered<S, Request> =
    Result<(<S as Service<Request>>::Response, Watch), Failure<<S as Service<Request>>::Error>>;

/// Where a request stands once it has arrived.
pub(super) enum Arrived {
    Granted(Permit),
    Queued(Acquire),
}

impl<S, Request, C, O> ResponseFuture<S, Request, C, O>
where
    S: Service<Request> + Clone,
{
    /// `inner` is ready, and the request was let in.
    pub(super) fn admitted(
        permit: Permit,
        inner: &mut S,
        request: Request,
        mut classified: Classified,
        shared: Arc<Settings<C, O>>,
    ) -> Self {
        let watch = admit(&shared, &mut classified, None, permit);
        let stage = Stage::Sent(Some(watch), inner.call(request));
        Self { stage, unsent: None, classified, arrived: None, shared }
    }

    /// `inner` is ready. A request that is let in at once is sent through it; otherwise its
    /// readiness is given back, so that others don't wait for this one.
    pub(super) fn new(
        mut acquire: Acquire,
        inner: &mut S,
        request: Request,
        classified: Classified,
        shared: Arc<Settings<C, O>>,
    ) -> Self {
        let arrived = classified.journey.as_ref().map(|_| shared.limiter.now());
        let mut unsent = None;
        let stage = match acquire.arrive() {
            Some(Ok(permit)) => return Self::admitted(permit, inner, request, classified, shared),
            Some(Err(error)) => {
                *inner = inner.clone();
                Stage::Failed(Some(error))
            }
            None => {
                *inner = inner.clone();
                unsent = Some((inner.clone(), request));
                Stage::Waiting(acquire)
            }
        };
        Self { stage, unsent, classified, arrived, shared }
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
        let stage = match arrived {
            Arrived::Granted(permit) => {
                Stage::Readying(Some(admit(&shared, &mut classified, arrived_at, permit)))
            }
            Arrived::Queued(acquire) => Stage::Waiting(acquire),
        };
        let unsent = Some((inner, request));
        Self { stage, unsent, classified, arrived: arrived_at, shared }
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
        loop {
            let next = match this.stage.as_mut().project() {
                StageProjection::Waiting(acquire) => match ready!(Pin::new(acquire).poll(cx)) {
                    Ok(permit) => {
                        let watch = admit(this.shared, this.classified, *this.arrived, permit);
                        Stage::Readying(Some(watch))
                    }
                    Err(error) => Stage::Failed(Some(error)),
                },
                StageProjection::Readying(watch) => {
                    let (inner, _) = this.unsent.as_mut().expect(POLLED_AGAIN);
                    let ready = ready!(inner.poll_ready(cx));
                    // From here on held by this call: an error or a panic releases it.
                    let watch = watch.take();
                    let (mut inner, request) = this.unsent.take().expect(POLLED_AGAIN);
                    ready.map_err(Failure::Inner)?;
                    Stage::Sent(watch, inner.call(request))
                }
                StageProjection::Sent(watch, future) => {
                    watch.as_mut().expect(POLLED_AGAIN).sent();
                    let result = ready!(future.poll(cx));
                    let watch = watch.take().expect(POLLED_AGAIN);
                    return Poll::Ready(end(&this.shared.observe, watch, result));
                }
                StageProjection::Failed(error) => {
                    let error = error.take().expect(POLLED_AGAIN);
                    return Poll::Ready(Err(Failure::Limited(error)));
                }
            };
            this.stage.set(next);
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
            Stage::Waiting(_) => "waiting",
            Stage::Readying(_) => "readying",
            Stage::Sent(..) => "sent",
            Stage::Failed(_) => "failed",
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
    watch: Watch,
    result: Result<Response, E>,
) -> Result<(Response, Watch), Failure<E>>
where
    E: 'static,
    O: Observe<Response>,
{
    match result {
        Ok(response) => Ok((response, watch)),
        Err(error) => {
            if observe.never_left(&error) {
                watch.never_left();
            }
            Err(Failure::Inner(error))
        }
    }
}

const POLLED_AGAIN: &str = "a response future was polled after it had ended";
