//! How the layer reads and judges the answers of a run.

use bytes::Bytes;
use http_body_util::Full;

use super::client::Slot;
use tollgate::Timestamp;
use tollgate::middleware::{Http, Judge, Judged, Judging, Observe, ResponseBody, ResponseGuard};
use tollgate::provider::Profile;

type Body = Full<Bytes>;
type Response = http::Response<Body>;

/// As [`Http`] reads and judges whole answers; besides, a request is sent again after any failure of
/// its connection, and gives its place in flight back until then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers(Http);

impl Answers {
    pub(super) fn new(profile: Profile) -> Self {
        Self(Http::new(profile).whole())
    }
}

impl Observe<Response> for Answers {
    type Observed = http::Response<ResponseBody<Body>>;

    fn observe(&self, response: Response, guard: ResponseGuard) -> Self::Observed {
        self.0.observe(response, guard)
    }

    fn never_left<E: 'static>(&self, error: &E) -> bool {
        Observe::<Response>::never_left(&self.0, error)
    }
}

impl Judge<Response> for Answers {
    type Judging = Judging<Body>;

    fn judge(
        &self,
        response: Response,
        guard: ResponseGuard,
        deadline: Option<Timestamp>,
    ) -> Judged<Self::Observed, Judging<Body>> {
        self.0.judge(response, guard, deadline)
    }

    fn passes<E: 'static>(&self, _: &E) -> bool {
        true
    }

    fn kept(&self, response: &mut Self::Observed) {
        response.extensions_mut().remove::<Slot>();
    }
}
