use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use bytes::Bytes;

use super::accept::prefers_json;
use super::rate_error::RateError;
use crate::problem::Problem;
use paceline::limiter::{AcquireError, Limiter};
use paceline::middleware::ScopeKey;
use paceline::middleware::respond::refusal;
use paceline::quota::Cost;

/// The format of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseFormat {
    /// Text, as in GoCC.
    Text,
    Json,
}

impl ResponseFormat {
    /// Returns the format that the client accepts.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        match prefers_json(headers) {
            true => Self::Json,
            false => Self::Text,
        }
    }

    /// Returns the response with the id of a grant.
    pub(super) fn granted(self, id: Bytes) -> Response<Body> {
        match self {
            Self::Text => respond(StatusCode::OK, TEXT, id),
            // The id consists of digits and hyphens; it needs no escaping.
            Self::Json => {
                respond(StatusCode::OK, JSON, [b"{\"request_id\":\"", &id[..], b"\"}"].concat())
            }
        }
    }

    /// Returns the response to an invalid request.
    pub(super) fn error(self, error: RateError) -> Response<Body> {
        let RateError { status, text } = error;
        let code = match status {
            StatusCode::FORBIDDEN => "disabled",
            StatusCode::NOT_FOUND => "not_found",
            StatusCode::SERVICE_UNAVAILABLE => "busy",
            _ => "invalid",
        };
        let mut response = match self {
            Self::Text => respond(status, TEXT, text),
            Self::Json => with_security_headers(Problem::new(status, code, text).into_response()),
        };
        set_retry_after(&mut response);
        response
    }

    /// Returns a problem document, or its detail as text.
    pub(super) fn problem(self, problem: Problem) -> Response<Body> {
        match self {
            Self::Text => {
                let (status, detail) = problem.into_text();
                respond(status, TEXT, detail.into_owned())
            }
            Self::Json => with_security_headers(problem.into_response()),
        }
    }

    /// Returns the response to a request that was not granted. As text it has headers only, like
    /// GoCC's.
    pub(super) fn refused(
        self,
        limiter: &Limiter,
        key: &str,
        cost: &Cost,
        error: &AcquireError,
    ) -> Response<Body> {
        let mut response = refusal(limiter, &[ScopeKey::named(key)], cost, error).map(Body::from);
        if self == Self::Text {
            *response.body_mut() = Body::empty();
            response.headers_mut().remove(CONTENT_TYPE);
        }
        set_retry_after(&mut response);
        with_security_headers(response)
    }
}

/// Returns an empty response.
pub(super) fn empty() -> Response<Body> {
    with_security_headers(Response::new(Body::empty()))
}

/// Returns a response with a text or JSON body.
pub(super) fn respond(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Body>,
) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    with_security_headers(response)
}

/// Disables caching and content sniffing.
fn with_security_headers(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Adds `Retry-After` to a temporary error.
fn set_retry_after(response: &mut Response<Body>) {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().entry::<HeaderName>(RETRY_AFTER).or_insert(HeaderValue::from(1));
    }
}

pub(super) const TEXT: &str = "text/plain; charset=UTF-8";

pub(super) const JSON: &str = "application/json";
