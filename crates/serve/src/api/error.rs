use std::borrow::Cow;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

/// An error response of the JSON API.
#[derive(Debug)]
pub(super) struct ApiError(Box<Response>);

impl ApiError {
    pub(super) fn new(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self::new(problem.into_response())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// Returns an error for a request that violates its schema (400).
pub(super) fn invalid(detail: impl Into<Cow<'static, str>>) -> ApiError {
    Problem::new(StatusCode::BAD_REQUEST, "invalid", detail).into()
}

/// Returns an error for a well-formed request with an invalid value (422).
pub(super) fn unprocessable(detail: impl Into<Cow<'static, str>>) -> ApiError {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail).into()
}

/// Returns an error for a server that is out of capacity (503).
pub(super) fn unavailable(code: &'static str, detail: impl Into<Cow<'static, str>>) -> ApiError {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).retry_after(RETRY_AFTER).into()
}

/// Returns an error for a server that is stopping (503).
pub(super) fn stopping() -> ApiError {
    unavailable("closed", "the server is stopping; retry once it is back, or use another instance")
}

/// The default of `Retry-After` in seconds.
pub(super) const RETRY_AFTER: u64 = 1;
