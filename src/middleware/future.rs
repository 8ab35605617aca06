use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;
use tower_service::Service;

use super::classify::Classified;
use super::error::RateLimitError;
use super::layer::Settings;
use super::observe::Observe;
use super::watch::{Passage, Watch};
use crate::limiter::{Acquire, AcquireError, Permit};

/// The future of [`RateLimitService`](super::RateLimitService).
///
/// # Cancel safety
/// Dropped while it waits, it leaves the queue and takes nothing. Dropped once the inner service's
/// future has been polled, the request counts as sent.
#[pin_project]
pub struct ResponseFuture<S: Service<Request>, Request, C, O> {
    #[pin]
    stage: Stage<S::Future>,
    /// What is to be sent, and through what: a clone that has yet to become ready.
    unsent: Option<(S, Request)>,
    classified: Classified,
    arrived: Option<u64>,
    shared: Arc<Settings<C, O>>,
}

#[pin_project(project = StageProjection)]
enum Stage<F> {
    /// In the queue. The readiness of the service that was called was given back.
    Waiting(Acquire),
    /// Let in; the clone becomes ready.
    Readying(Option<Passage>),
    /// On its way.
    Sent(Option<Passage>, #[pin] F),
    Failed(Option<AcquireError>),
}

impl<S, Request, C, O> ResponseFuture<S, Request, C, O>
where
    S: Service<Request> + Clone,
{
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
            Some(Ok(permit)) => {
                note(&classified, arrived, &permit);
                let passage = Passage::new(permit);
                let future = inner.call(request);
                Stage::Sent(Some(passage), future)
            }
            Some(Err(error)) => Stage::Failed(Some(error)),
            None => {
                let fresh = inner.clone();
                drop(std::mem::replace(inner, fresh.clone()));
                unsent = Some((fresh, request));
                Stage::Waiting(acquire)
            }
        };
        Self { stage, unsent, classified, arrived, shared }
    }
}

impl<S, Request, C, O> Future for ResponseFuture<S, Request, C, O>
where
    S: Service<Request> + Clone,
    S::Error: 'static,
    O: Observe<S::Response>,
{
    type Output = Result<O::Observed, RateLimitError<S::Error>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.stage.as_mut().project() {
                StageProjection::Waiting(acquire) => match ready!(Pin::new(acquire).poll(cx)) {
                    Ok(permit) => {
                        note(this.classified, *this.arrived, &permit);
                        Stage::Readying(Some(Passage::new(permit)))
                    }
                    Err(error) => Stage::Failed(Some(error)),
                },
                StageProjection::Readying(passage) => {
                    let (inner, _) = this.unsent.as_mut().expect("it wasn't sent yet");
                    ready!(inner.poll_ready(cx)).map_err(RateLimitError::Inner)?;
                    let passage = passage.take();
                    let (mut inner, request) = this.unsent.take().expect("it wasn't sent yet");
                    Stage::Sent(passage, inner.call(request))
                }
                StageProjection::Sent(passage, future) => {
                    if let Some(passage) = passage {
                        passage.sent();
                    }
                    let result = ready!(future.poll(cx));
                    let passage = passage.take().expect("a response comes once");
                    return Poll::Ready(arrive(this.shared, this.classified, passage, result));
                }
                StageProjection::Failed(error) => {
                    let error = error.take().expect("an error comes once");
                    return Poll::Ready(Err(RateLimitError::Limited(error)));
                }
            };
            this.stage.set(next);
        }
    }
}

impl<S: Service<Request>, Request, C, O> fmt::Debug for ResponseFuture<S, Request, C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("key", &self.classified.key)
            .field("cost", &self.classified.cost)
            .finish_non_exhaustive()
    }
}

/// Hands the reservation over to the response, or ends it with the error.
fn arrive<C, O, Response, E>(
    shared: &Settings<C, O>,
    classified: &mut Classified,
    passage: Passage,
    result: Result<Response, E>,
) -> Result<O::Observed, RateLimitError<E>>
where
    E: 'static,
    O: Observe<Response>,
{
    match result {
        Ok(response) => {
            let (limiter, key) = (shared.limiter.clone(), classified.key.clone());
            let (discover, journey) = (shared.options.discover, classified.journey.take());
            let watch = Watch::new(passage.arrive(), limiter, key, discover, journey);
            Ok(shared.observe.observe(response, watch))
        }
        Err(error) => {
            if shared.observe.never_left(&error) {
                passage.never_left();
            }
            Err(RateLimitError::Inner(error))
        }
    }
}

/// Writes down when the request was let in, for a caller who wants to know.
fn note(classified: &Classified, arrived: Option<u64>, permit: &Permit) {
    let Some(journey) = &classified.journey else { return };
    let granted_at = permit.granted_at();
    let waited = granted_at.saturating_sub(arrived.unwrap_or(granted_at));
    journey.write(|facts| {
        facts.key = classified.key.clone();
        facts.reserved = Some(permit.cost().clone());
        facts.granted_at = Some(granted_at);
        facts.waited = std::time::Duration::from_nanos(waited);
    });
}
