use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_service::Service;

use super::judge::Judge;
use super::remaining_retries::RemainingRetries;
use super::replay::Replay;
use super::stage::{NextStep, Stage, StageProjection};
use crate::middleware::{BoxError, Classify, RateLimitError, ResponseFuture};

pin_project! {
    /// The future of [`RetryService`](super::RetryService).
    ///
    /// # Cancel safety
    /// The same as [`ResponseFuture`] for each attempt. Dropping the future while it waits for a retry
    /// removes the request from the queue, and the retry isn't charged. Charges of earlier attempts
    /// stay.
    ///
    /// # Panics
    /// Those of [`ResponseFuture`].
    pub struct RetryFuture<S, Request, C, O>
    where
        S: Service<Request>,
        O: Judge<S::Response>,
    {
        #[pin]
        stage: Stage<S, Request, C, O>,
        // `None` for a request that can't be retried.
        remaining: Option<Box<RemainingRetries<S, Request, C, O>>>,
    }
}

impl<S, Request, C, O> RetryFuture<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    pub(super) fn new(
        first: ResponseFuture<S, Request, C, O>,
        remaining: Option<Box<RemainingRetries<S, Request, C, O>>>,
    ) -> Self {
        Self { stage: Stage::Sending { future: first }, remaining }
    }
}

impl<S, Request, C, O> Future for RetryFuture<S, Request, C, O>
where
    S: Service<Request> + Clone,
    S::Error: Into<BoxError> + 'static,
    C: Classify<Request>,
    O: Judge<S::Response>,
    Request: Replay,
{
    type Output = Result<O::Observed, RateLimitError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match (this.stage.as_mut().project(), &mut *this.remaining) {
                (StageProjection::Sending { future }, None) => return future.poll(cx),
                (StageProjection::Sending { future }, Some(remaining)) => {
                    let result = ready!(future.poll_guarded(cx));
                    remaining.on_result(result)
                }
                (StageProjection::Judging { judging }, remaining) => {
                    let (response, verdict) = ready!(judging.poll(cx));
                    remaining.as_mut().expect(IS_RETRYABLE).finish_attempt(Ok(response), verdict)
                }
                (StageProjection::Pausing { sleep }, remaining) => {
                    ready!(sleep.as_mut().poll(cx));
                    remaining.as_mut().expect(IS_RETRYABLE).on_pause_end()
                }
            };
            match next {
                NextStep::Stage(stage) => this.stage.set(stage),
                NextStep::Finished(result) => {
                    return Poll::Ready(result.map_err(RateLimitError::from));
                }
            }
        }
    }
}

impl<S, Request, C, O> fmt::Debug for RetryFuture<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Sending { future } => {
                return f.debug_tuple("RetryFuture").field(future).finish();
            }
            Stage::Judging { .. } => "judging",
            Stage::Pausing { .. } => "pausing",
        };
        f.debug_tuple("RetryFuture").field(&stage).finish()
    }
}

const IS_RETRYABLE: &str = "only a request that can be retried is judged";
