use super::response_guard::ResponseGuard;
use super::server_failure::ServerFailure;

/// Determines the actual cost of a request from its response.
///
/// Closures implement it, for responses that are complete when they arrive:
/// `|response: &R| Some(Cost::new().tokens(response.tokens))`. `None` charges the reserved cost.
#[diagnostic::on_unimplemented(
    message = "the rate-limit layer cannot read the usage of a `{Response}`",
    note = "for a service that isn't HTTP, set `.observe(|response: &Res| -> Option<Cost> ..)`"
)]
pub trait Observe<Response> {
    /// The response that the caller gets, wrapped if its body is streamed.
    type Observed;

    /// `true` if the [`ResponseGuard`] may outlive the call and must hold a reference to the limiter.
    #[doc(hidden)]
    const KEEPS_GUARD: bool = true;

    /// Observes a response. The reservation is settled when the [`ResponseGuard`] is dropped, so that the
    /// request counts as in flight until then.
    ///
    /// Responses with a streamed body keep the guard until the body has ended: pass it to the `observe` of
    /// [`Http`](super::Http), or wrap the body (`map_reqwest_body` does that with a response of reqwest, which
    /// keeps its URL). A body that is empty from the start, as that of a HEAD, may never be polled: drop its
    /// guard.
    fn observe(&self, response: Response, guard: ResponseGuard) -> Self::Observed;

    /// Returns `true` if the error means that the request was not sent, so that its reservation is
    /// released. Default: `false`.
    fn is_unsent<E: 'static>(&self, error: &E) -> bool {
        let _ = error;
        false
    }

    /// Returns what the error shows about the server, beside its request: see [`ServerFailure`]. Default: nothing.
    fn server_failure<E: 'static>(&self, error: &E) -> Option<ServerFailure> {
        let _ = error;
        None
    }
}

impl<F, Response> Observe<Response> for F
where
    F: Fn(&Response) -> Option<crate::quota::Cost>,
{
    type Observed = Response;

    const KEEPS_GUARD: bool = false;

    fn observe(&self, response: Response, mut guard: ResponseGuard) -> Response {
        if let Some(charge) = self(&response) {
            guard.charged(charge);
        }
        response
    }
}
