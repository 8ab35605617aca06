use std::time::Duration;

use crate::Timestamp;
use crate::middleware::{Observe, ResponseGuard};

/// The decision whether to retry a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Return the response or the error to the caller unchanged.
    Final,
    /// Retry the request after this delay, or after a back-off without one.
    ///
    /// A zero delay means that the limiter already holds back the whole key.
    Retry(Option<Duration>),
    /// The provider refused the request for a limit. While that holds back the key, queue the request again, in front
    /// of new ones. If the refusal concerns this request alone, retry it after this delay, or after a back-off
    /// without one.
    Requeue(Option<Duration>),
}

/// A response, either with a final verdict or still to be judged.
#[derive(Debug)]
pub enum Judged<Response, Judging> {
    /// The response goes to the caller without further reading.
    Passed(Response),
    /// The response is read until its verdict is known.
    Judging(Judging),
}

/// An [`Observe`] that also decides whether to retry a request, by its response or error.
///
/// [`Http`](crate::middleware::Http) implements it for HTTP responses. A custom implementation for HTTP
/// can delegate to `Http` and use its [`Verdict`], which covers errors in response bodies. For another
/// service, the response value itself decides:
///
/// ```
/// use std::future::{Ready, ready};
/// use paceline::Timestamp;
/// use paceline::middleware::{Judge, Judged, Observe, Verdict, ResponseGuard};
///
/// enum Answer {
///     Busy,
///     Done(u64),
/// }
///
/// struct RetryBusy;
///
/// impl Observe<Answer> for RetryBusy {
///     type Observed = Answer;
///
///     fn observe(&self, answer: Answer, _guard: ResponseGuard) -> Answer {
///         answer
///     }
/// }
///
/// impl Judge<Answer> for RetryBusy {
///     type Judging = Ready<(Answer, Verdict)>;
///
///     fn judge(
///         &self,
///         answer: Answer,
///         guard: ResponseGuard,
///         _deadline: Option<Timestamp>,
///     ) -> Judged<Answer, Self::Judging> {
///         match answer {
///             Answer::Busy => {
///                 drop(guard);
///                 Judged::Judging(ready((answer, Verdict::Retry(None))))
///             }
///             Answer::Done(_) => Judged::Passed(self.observe(answer, guard)),
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the rate-limit layer can't decide whether to retry after a `{Response}`",
    note = "a closure returns the charge of a response, but no retry decision: implement `Judge` in addition to `Observe`",
    note = "without `.retry(n)`, `Observe` is enough"
)]
pub trait Judge<Response>: Observe<Response> {
    /// The future that reads the response until its verdict is known.
    type Judging: Future<Output = (Self::Observed, Verdict)>;

    /// Judges a response whose request can still be retried.
    ///
    /// Before it returns [`Verdict::Retry`], the implementation must drop the [`ResponseGuard`], since
    /// the retry makes a new reservation. There is no retry after `deadline`, so an implementation can
    /// stop reading then.
    fn judge(
        &self,
        response: Response,
        guard: ResponseGuard,
        deadline: Option<Timestamp>,
    ) -> Judged<Self::Observed, Self::Judging>;

    /// Returns true if the request can be retried after `error`. Default: only if it was never sent.
    fn is_retryable<E: 'static>(&self, error: &E) -> bool {
        self.is_unsent(error)
    }

    /// Releases resources of a failed response, such as its connection, before its request is retried.
    ///
    /// The response is kept until the retry is sent, and goes to the caller if the limiter refuses the
    /// retry. Default: does nothing.
    fn before_retry(&self, response: &mut Self::Observed) {
        let _ = response;
    }
}
