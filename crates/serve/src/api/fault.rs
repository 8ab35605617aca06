use std::borrow::Cow;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

/// Why a request isn't answered as it asks: the answer that says so.
#[derive(Debug)]
pub(super) struct Fault(Box<Response>);

impl Fault {
    pub(super) fn new(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self::new(problem.into_response())
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// A request that says what its schema doesn't let it say.
pub(super) fn invalid(detail: impl Into<Cow<'static, str>>) -> Fault {
    Problem::new(StatusCode::BAD_REQUEST, "invalid", detail).into()
}

/// A request of the right form, which can't be meant.
pub(super) fn meaningless(detail: impl Into<Cow<'static, str>>) -> Fault {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail).into()
}

/// A server that takes no more of something for now.
pub(super) fn full(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Fault {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).retry_after(SOON).into()
}

/// A server that stops.
pub(super) fn closed() -> Fault {
    full("closed", "the server is stopping; ask again once it is back, or another one")
}

/// In seconds, where nobody knows.
pub(super) const SOON: u64 = 1;
