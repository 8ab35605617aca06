use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use serde::Serialize;

/// A problem document (RFC 9457).
#[derive(Debug, Clone, Serialize)]
pub(super) struct Problem {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    /// A machine-readable code.
    code: &'static str,
    /// A human-readable description of the error and how to fix it.
    detail: Cow<'static, str>,
    /// The time until a retry may succeed, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        let title = status.canonical_reason().unwrap_or_default();
        let (detail, status) = (detail.into(), status.as_u16());
        Self { kind: "about:blank", title, status, code, detail, retry_after: None }
    }

    /// Returns the document for an unexpected failure of the server, such as a panic.
    pub(super) fn internal() -> Self {
        let detail = "internal server error; see the server's log";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// Returns the status and detail for a plain-text response.
    pub(super) fn into_text(self) -> (StatusCode, Cow<'static, str>) {
        (self.status(), self.detail)
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(super) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let json = serde_json::to_vec(&self).expect("serialization to JSON cannot fail");
        let mut response = Response::new(Body::from(json));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
