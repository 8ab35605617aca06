use axum::http::StatusCode;

/// The status and text of an error response. The texts are part of GoCC's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateError {
    pub(super) status: StatusCode,
    pub(super) text: &'static str,
}

impl RateError {
    /// Returns the error for an invalid request (400).
    pub(super) fn invalid(text: &'static str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, text }
    }

    /// Returns the error for a server that is out of capacity (503).
    pub(super) fn busy(text: &'static str) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, text }
    }
}
