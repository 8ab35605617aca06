use std::time::Duration;

use crate::middleware::{Observe, ResponseGuard};
use crate::timestamp::Timestamp;

/// What becomes of a request after a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The caller gets what came, as it came.
    Final,
    /// The same request may succeed later: after this delay, where there is a reason for one; zero
    /// where the limiter was told of it and holds the whole key.
    Again(Option<Duration>),
}

/// A response, as far as it is known whether its request is worth sending again.
#[derive(Debug)]
pub enum Judged<Response, Judging> {
    /// Nothing has to be read of it: it is the caller's, as it is.
    Passed(Response),
    /// To be read on until that is known.
    Judging(Judging),
}

/// An [`Observe`] that also says whether a request is worth sending again, by how it went.
///
/// [`Http`](crate::middleware::Http) does for HTTP responses; one of your own that reads those too
/// hands them to it, and goes by its [`Verdict`], which knows the error in a body. For another service
/// the response itself tells:
///
/// ```
/// use std::future::{Ready, ready};
/// use tollgate::Timestamp;
/// use tollgate::middleware::{Judge, Judged, Observe, Verdict, ResponseGuard};
///
/// enum Answer {
///     Busy,
///     Done(u64),
/// }
///
/// struct Tell;
///
/// impl Observe<Answer> for Tell {
///     type Observed = Answer;
///
///     fn observe(&self, answer: Answer, _watch: ResponseGuard) -> Answer {
///         answer
///     }
/// }
///
/// impl Judge<Answer> for Tell {
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
///                 Judged::Judging(ready((answer, Verdict::Again(None))))
///             }
///             Answer::Done(_) => Judged::Passed(self.observe(answer, guard)),
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the rate-limit layer doesn't know whether a `{Response}` is worth another try",
    note = "closures say what a response was charged, not whether to send again: implement `Judge` beside `Observe`",
    note = "without `.retry(n)` an `Observe` is enough"
)]
pub trait Judge<Response>: Observe<Response> {
    /// Reads on until it knows.
    type Judging: Future<Output = (Self::Observed, Verdict)>;

    /// Judges a response whose request could still be sent again.
    ///
    /// Where the verdict is [`Verdict::Again`] the [`ResponseGuard`] must be gone: the next try is a
    /// reservation of its own. After the `deadline` of the request,
    /// no other try follows: what is not known by then needs no more reading.
    fn judge(
        &self,
        response: Response,
        guard: ResponseGuard,
        deadline: Option<Timestamp>,
    ) -> Judged<Self::Observed, Self::Judging>;

    /// Whether a request that came to this error is worth sending again. Default: if it never left.
    fn passes<E: 'static>(&self, error: &E) -> bool {
        self.is_unsent(error)
    }

    /// A failed response that is kept while its request is sent again, to be handed out if that
    /// comes to nothing: the place to let go of what it holds on to.
    fn kept(&self, response: &mut Self::Observed) {
        let _ = response;
    }
}
