//! The policy by which the layer observes and judges responses.

use super::client::{InFlightPermit, LastRead, ReceivedBody};
use paceline::Timestamp;
use paceline::middleware::{
    Http, Judge, Judged, Judging, Observe, ResponseBody, ResponseGuard, ServerFailure,
};
use paceline::provider::Profile;

type Response = http::Response<ReceivedBody>;

/// Observes and judges whole responses as [`Http`] does. In addition, a request is retried after
/// any connection error, and releases its in-flight permit until then.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponsePolicy {
    http: Http,
}

impl ResponsePolicy {
    pub(super) fn new(profile: Profile) -> Self {
        Self { http: Http::new(profile).whole() }
    }

    /// Charges a response that was cut off by what had arrived.
    fn read_extensions(response: &Response, guard: &mut ResponseGuard) {
        if let Some(LastRead(at)) = response.extensions().get() {
            guard.read_until(*at);
        }
    }
}

impl Observe<Response> for ResponsePolicy {
    type Observed = http::Response<ResponseBody<ReceivedBody>>;

    fn observe(&self, response: Response, mut guard: ResponseGuard) -> Self::Observed {
        Self::read_extensions(&response, &mut guard);
        self.http.observe(response, guard)
    }

    fn is_unsent<E: 'static>(&self, error: &E) -> bool {
        Observe::<Response>::is_unsent(&self.http, error)
    }

    fn server_failure<E: 'static>(&self, error: &E) -> Option<ServerFailure> {
        Observe::<Response>::server_failure(&self.http, error)
    }
}

impl Judge<Response> for ResponsePolicy {
    type Judging = Judging<ReceivedBody>;

    fn judge(
        &self,
        response: Response,
        mut guard: ResponseGuard,
        deadline: Option<Timestamp>,
    ) -> Judged<Self::Observed, Judging<ReceivedBody>> {
        Self::read_extensions(&response, &mut guard);
        self.http.judge(response, guard, deadline)
    }

    fn is_retryable<E: 'static>(&self, _: &E) -> bool {
        true
    }

    fn before_retry(&self, response: &mut Self::Observed) {
        response.extensions_mut().remove::<InFlightPermit>();
    }
}
