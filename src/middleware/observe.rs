use super::response_guard::ResponseGuard;

/// Says what a response means for the reservation behind its request.
///
/// A closure from a response to what it was charged does where a response is whole when it comes:
/// `|response: &R| Some(Cost::new().tokens(response.tokens))`; `None` keeps what was reserved.
#[diagnostic::on_unimplemented(
    message = "the rate-limit layer doesn't know what a `{Response}` says of its usage",
    note = "a service that isn't HTTP needs `.observe(|response: &R| -> Option<Cost>)`"
)]
pub trait Observe<Response> {
    /// What the caller gets: the response, wrapped where its end is still to come.
    type Observed;

    /// True if the [`ResponseGuard`] may outlive the call, so that it has to keep the limiter.
    #[doc(hidden)]
    const KEEPS_GUARD: bool = true;

    /// Takes the [`ResponseGuard`] over: it settles when it is dropped.
    fn observe(&self, response: Response, guard: ResponseGuard) -> Self::Observed;

    /// Whether this error says that the request never left, so that nothing is charged for it.
    fn never_left<E: 'static>(&self, error: &E) -> bool {
        let _ = error;
        false
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
