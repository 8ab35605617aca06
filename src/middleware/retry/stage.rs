use pin_project_lite::pin_project;
use tower_service::Service;

use super::judge::Judge;
use crate::limiter::Sleep;
use crate::middleware::ResponseFuture;
use crate::middleware::error::Failure;

pin_project! {
    #[project = StageProjection]
    /// The stage of a [`RetryFuture`](super::RetryFuture).
    // Not boxed: nearly every request has only the largest stage.
    pub(super) enum Stage<S, Request, C, O>
    where
        S: Service<Request>,
        O: Judge<S::Response>,
    {
        // In the wait queue or sent.
        Sending { #[pin] future: ResponseFuture<S, Request, C, O> },
        // Reading the response until the verdict is known.
        Judging { #[pin] judging: O::Judging },
        // Waiting for the delay before the request enters the wait queue again.
        Pausing { sleep: Sleep },
    }
}

/// The next step after a stage has completed.
#[expect(clippy::large_enum_variant, reason = "moved once, not stored")]
pub(super) enum NextStep<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    Stage(Stage<S, Request, C, O>),
    Finished(Result<O::Observed, Failure<S::Error>>),
}
