use std::time::Duration;

use crate::middleware::{Observe, Watch};

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
pub trait Judge<Response>: Observe<Response> {
    /// Reads on until it knows.
    type Judging: Future<Output = (Self::Observed, Verdict)>;

    /// Judges a response whose request could still be sent again.
    ///
    /// Where the verdict is [`Verdict::Again`] the [`Watch`] must be gone: the next try is a
    /// reservation of its own. After the `deadline` of the request, in nanoseconds since the epoch,
    /// no other try follows: what is not known by then needs no more reading.
    fn judge(
        &self,
        response: Response,
        watch: Watch,
        deadline: Option<u64>,
    ) -> Judged<Self::Observed, Self::Judging>;

    /// Whether a request that came to this error is worth sending again. Default: if it never left.
    fn passes<E: 'static>(&self, error: &E) -> bool {
        self.never_left(error)
    }

    /// A failed response that is kept while its request is sent again, to be handed out if that
    /// comes to nothing: the place to let go of what it holds on to.
    fn kept(&self, response: &mut Self::Observed) {
        let _ = response;
    }
}
