use super::watch::Watch;

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

    /// True if the [`Watch`] may outlive the call, so that it has to keep the limiter.
    #[doc(hidden)]
    const KEEPS_WATCH: bool = true;

    /// Takes the [`Watch`] over: it settles when it is dropped.
    fn observe(&self, response: Response, watch: Watch) -> Self::Observed;

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

    const KEEPS_WATCH: bool = false;

    fn observe(&self, response: Response, mut watch: Watch) -> Response {
        if let Some(charge) = self(&response) {
            watch.charged(charge);
        }
        response
    }
}
