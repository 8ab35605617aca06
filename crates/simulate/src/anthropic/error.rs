//! Errors in Anthropic's format.

use super::headers::ORGANIZATION;
use crate::api_error::ApiError;
use crate::exceeded_limit::{ExceededLimit, LimitKind};
use crate::fault::FaultKind;

/// Returns the error for a request over a limit.
pub(super) fn refusal(refusal: &ExceededLimit) -> ApiError {
    ApiError::new(429, RATE_LIMIT, message(refusal))
}

/// Returns the error of a request that is larger than a limit.
pub(super) fn too_large() -> ApiError {
    ApiError::new(429, RATE_LIMIT, LONG_CONTEXT)
}

/// Returns the error for a request over a limit that it doesn't name.
pub(super) fn unnamed_refusal() -> ApiError {
    ApiError::new(429, RATE_LIMIT, UNNAMED)
}

/// Returns the error for a simulated failure.
pub(super) fn failure(kind: FaultKind) -> ApiError {
    match kind {
        FaultKind::ServerError => ApiError::new(500, "api_error", "Internal server error"),
        FaultKind::Overloaded => ApiError::new(529, "overloaded_error", "Overloaded"),
        FaultKind::Unauthorized => ApiError::new(401, "authentication_error", "invalid x-api-key"),
        FaultKind::InsufficientQuota => {
            invalid(SPENT).with_headers(vec![("x-should-retry", "false".to_owned())])
        }
        FaultKind::RateLimited | FaultKind::TooLarge | FaultKind::DailyLimit => unnamed_refusal(),
    }
}

/// Returns the error for an unknown method or path.
pub(super) fn not_found() -> ApiError {
    ApiError::new(404, "not_found_error", "Not Found")
}

/// Returns the error for a model that the provider doesn't have.
pub(super) fn unknown_model(model: &str) -> ApiError {
    ApiError::new(404, "not_found_error", format!("model: {model}"))
}

/// Returns an `invalid_request_error`.
pub(super) fn invalid(message: impl Into<Box<str>>) -> ApiError {
    ApiError::new(400, "invalid_request_error", message)
}

/// Returns the message of a refusal, as Anthropic words it.
fn message(refusal: &ExceededLimit) -> String {
    let what = match refusal.kind {
        LimitKind::InputTokensPerMinute => "input tokens per minute",
        LimitKind::OutputTokensPerMinute => "output tokens per minute",
        LimitKind::TokensPerMinute => "tokens per minute",
        LimitKind::RequestsPerMinute => "requests per minute",
        LimitKind::RequestsPerDay => "requests per day",
        LimitKind::Concurrency => "concurrent requests",
        LimitKind::Spend => "micro-dollars per ten minutes",
    };
    let limit = refusal.limit;
    format!(
        "This request would exceed your organization's rate limit of {limit} {what} \
         (org: {ORGANIZATION}, model: {}). For details, refer to: \
         https://docs.claude.com/en/api/rate-limits. You can see the response headers for current \
         usage. Please reduce the prompt length or the maximum tokens requested, or try again later.",
        refusal.model
    )
}

const UNNAMED: &str =
    "This request would exceed your account's rate limit. Please try again later.";
const RATE_LIMIT: &str = "rate_limit_error";
const SPENT: &str = "You have reached your specified API usage limits. You will regain access on 2099-01-01 at \
                     00:00 UTC.";
const LONG_CONTEXT: &str = "Extra usage is required for long context requests.";
