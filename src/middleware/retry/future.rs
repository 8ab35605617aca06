use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_service::Service;

use super::again::{Again, Next};
use super::judge::Judge;
use super::replay::Replay;
use crate::limiter::Sleep;
use crate::middleware::{BoxError, Classify, RateLimitError, ResponseFuture};

pin_project! {
    /// The future of [`RetryService`](super::RetryService).
    ///
    /// # Cancel safety
    /// That of [`ResponseFuture`], for each try. Dropped while it waits to send again, it leaves the
    /// queue and takes nothing more; what earlier tries were charged stays charged.
    pub struct RetryFuture<S, Request, C, O>
    where
        S: Service<Request>,
        O: Judge<S::Response>,
    {
        #[pin]
        stage: Stage<S, Request, C, O>,
        // `None` for a request that can't be sent again.
        again: Option<Box<Again<S, Request, C, O>>>,
    }
}

pin_project! {
    #[project = StageProjection]
    // Not boxed: nearly every request is in the largest alone.
    pub(super) enum Stage<S, Request, C, O>
    where
        S: Service<Request>,
        O: Judge<S::Response>,
    {
        // In the queue, or on its way.
        Trying { #[pin] one: ResponseFuture<S, Request, C, O> },
        // Answered; as much is read as tells whether to try again.
        Judging { #[pin] judging: O::Judging },
        // Held back by itself, before it queues again.
        Pausing { sleep: Sleep },
    }
}

impl<S, Request, C, O> RetryFuture<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    pub(super) fn new(
        first: ResponseFuture<S, Request, C, O>,
        again: Option<Box<Again<S, Request, C, O>>>,
    ) -> Self {
        Self { stage: Stage::Trying { one: first }, again }
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
            let next = match (this.stage.as_mut().project(), &mut *this.again) {
                (StageProjection::Trying { one }, None) => return one.poll(cx),
                (StageProjection::Trying { one }, Some(again)) => {
                    let answered = ready!(one.poll_answered(cx));
                    again.answered(answered)
                }
                (StageProjection::Judging { judging }, again) => {
                    let (response, verdict) = ready!(judging.poll(cx));
                    again.as_mut().expect(JUDGED).came_to(Ok(response), verdict)
                }
                (StageProjection::Pausing { sleep }, again) => {
                    ready!(sleep.as_mut().poll(cx));
                    again.as_mut().expect(JUDGED).paused()
                }
            };
            match next {
                Next::Stage(stage) => this.stage.set(stage),
                Next::Ended(result) => return Poll::Ready(result.map_err(RateLimitError::from)),
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
            Stage::Trying { one } => return f.debug_tuple("RetryFuture").field(one).finish(),
            Stage::Judging { .. } => "judging",
            Stage::Pausing { .. } => "pausing",
        };
        f.debug_tuple("RetryFuture").field(&stage).finish()
    }
}

const JUDGED: &str = "only a request that can be sent again is judged";
