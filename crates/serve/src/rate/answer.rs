use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use bytes::Bytes;

use super::accept::prefers_json;
use crate::problem::Problem;
use tollgate::limiter::{AcquireError, Limiter};
use tollgate::middleware::ScopeKey;
use tollgate::middleware::respond::refusal;
use tollgate::quota::Cost;

/// In which form a client is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As GoCC does.
    Text,
    Json,
}

impl Form {
    /// The one that a request asks for.
    pub(super) fn asked(headers: &HeaderMap) -> Self {
        match prefers_json(headers) {
            true => Self::Json,
            false => Self::Text,
        }
    }

    /// The id of a grant.
    pub(super) fn granted(self, id: Bytes) -> Response<Body> {
        match self {
            Self::Text => answer(StatusCode::OK, TEXT, id),
            // It is made of digits.
            Self::Json => {
                answer(StatusCode::OK, JSON, [b"{\"request_id\":\"", &id[..], b"\"}"].concat())
            }
        }
    }

    /// Why a request can't be answered.
    pub(super) fn wrong(self, (status, what): (StatusCode, &'static str)) -> Response<Body> {
        let code = match status {
            StatusCode::FORBIDDEN => "disabled",
            StatusCode::NOT_FOUND => "not_found",
            StatusCode::SERVICE_UNAVAILABLE => "busy",
            _ => "invalid",
        };
        let mut response = match self {
            Self::Text => answer(status, TEXT, what),
            Self::Json => safe(Problem::new(status, code, what).into_response()),
        };
        come_again(&mut response);
        response
    }

    /// The same as a problem document, or its detail as text.
    pub(super) fn problem(self, problem: Problem) -> Response<Body> {
        match self {
            Self::Text => {
                let (status, detail) = problem.into_text();
                answer(status, TEXT, detail.into_owned())
            }
            Self::Json => safe(problem.into_response()),
        }
    }

    /// Why a request isn't granted: as text nothing but what headers say.
    pub(super) fn refused(
        self,
        limiter: &Limiter,
        (key, cost): (&str, &Cost),
        error: &AcquireError,
    ) -> Response<Body> {
        let mut response = refusal(limiter, &[ScopeKey::named(key)], cost, error).map(Body::from);
        if self == Self::Text {
            *response.body_mut() = Body::empty();
            response.headers_mut().remove(CONTENT_TYPE);
        }
        come_again(&mut response);
        safe(response)
    }
}

/// Done, and nothing more to say.
pub(super) fn done() -> Response<Body> {
    safe(Response::new(Body::empty()))
}

/// An answer of text or JSON.
pub(super) fn answer(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Body>,
) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    safe(response)
}

/// Nobody keeps an answer for another, or takes it for something else than it says.
fn safe(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// What is refused for a moment says so.
fn come_again(response: &mut Response<Body>) {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().entry::<HeaderName>(RETRY_AFTER).or_insert(HeaderValue::from(1));
    }
}

pub(super) const TEXT: &str = "text/plain; charset=UTF-8";

pub(super) const JSON: &str = "application/json";
