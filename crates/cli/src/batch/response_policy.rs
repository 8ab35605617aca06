//! The policy by which the layer observes and judges responses.

use bytes::Bytes;
use http_body_util::Full;

use super::client::InFlightPermit;
use tollgate::Timestamp;
use tollgate::middleware::{Http, Judge, Judged, Judging, Observe, ResponseBody, ResponseGuard};
use tollgate::provider::Profile;

type Body = Full<Bytes>;
type Response = http::Response<Body>;

/// Observes and judges whole responses as [`Http`] does. In addition, a request is retried after
/// any connection error, and releases its in-flight permit until then.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponsePolicy(Http);

impl ResponsePolicy {
    pub(super) fn new(profile: Profile) -> Self {
        Self(Http::new(profile).whole())
    }
}

impl Observe<Response> for ResponsePolicy {
    type Observed = http::Response<ResponseBody<Body>>;

    fn observe(&self, response: Response, guard: ResponseGuard) -> Self::Observed {
        self.0.observe(response, guard)
    }

    fn is_unsent<E: 'static>(&self, error: &E) -> bool {
        Observe::<Response>::is_unsent(&self.0, error)
    }
}

impl Judge<Response> for ResponsePolicy {
    type Judging = Judging<Body>;

    fn judge(
        &self,
        response: Response,
        guard: ResponseGuard,
        deadline: Option<Timestamp>,
    ) -> Judged<Self::Observed, Judging<Body>> {
        self.0.judge(response, guard, deadline)
    }

    fn is_retryable<E: 'static>(&self, _: &E) -> bool {
        true
    }

    fn before_retry(&self, response: &mut Self::Observed) {
        response.extensions_mut().remove::<InFlightPermit>();
    }
}
