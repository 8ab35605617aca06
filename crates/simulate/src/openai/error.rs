//! Errors in OpenAI's format.

use std::fmt;
use std::time::Duration;

use super::headers::{ORGANIZATION, go_duration};
use crate::api_error::ApiError;
use crate::exceeded_limit::{ExceededLimit, LimitKind};
use crate::fault::FaultKind;

/// Returns the error for a request over a limit, which states `delay`.
pub(super) fn refusal(refusal: &ExceededLimit, delay: Option<Duration>) -> ApiError {
    let kind = match refusal.kind {
        LimitKind::RequestsPerMinute | LimitKind::RequestsPerDay => "requests",
        LimitKind::Concurrency => "concurrency",
        LimitKind::Spend => "spend",
        _ => "tokens",
    };
    ApiError::new(429, kind, message(refusal, delay)).with_code(RATE_LIMIT)
}

/// Returns the error for a request over a limit that it doesn't name.
pub(super) fn unnamed_refusal() -> ApiError {
    ApiError::new(429, RATE_LIMIT, UNNAMED).with_code(RATE_LIMIT)
}

/// Returns the error for a simulated failure.
pub(super) fn failure(kind: FaultKind) -> ApiError {
    match kind {
        FaultKind::ServerError => ApiError::new(500, "server_error", SERVER_ERROR),
        FaultKind::Overloaded => {
            ApiError::new(503, "server_error", OVERLOADED).with_code("server_is_overloaded")
        }
        FaultKind::Unauthorized => invalid(401, UNAUTHORIZED).with_code("invalid_api_key"),
        FaultKind::InsufficientQuota => {
            ApiError::new(429, "insufficient_quota", NO_QUOTA).with_code("insufficient_quota")
        }
        FaultKind::RateLimited | FaultKind::TooLarge | FaultKind::DailyLimit => unnamed_refusal(),
    }
}

/// Returns the error for an unknown method or path.
pub(super) fn not_found(method: &str, path: &str) -> ApiError {
    invalid(404, format!("Invalid URL ({method} {path})"))
}

/// Returns the error for a model that the provider doesn't have.
pub(super) fn unknown_model(model: &str) -> ApiError {
    let message = format!("The model `{model}` does not exist or you do not have access to it.");
    invalid(404, message).with_code("model_not_found")
}

/// Returns an `invalid_request_error` without a code.
pub(super) fn invalid(status: u16, message: impl Into<Box<str>>) -> ApiError {
    ApiError::new(status, "invalid_request_error", message)
}

/// Returns a 400 error for a missing field.
pub(super) fn missing_parameter(param: &'static str) -> ApiError {
    let message = format!("Missing required parameter: '{param}'.");
    invalid(400, message).with_code("missing_required_parameter").with_param(param)
}

/// Returns a 400 error for an array without elements.
pub(super) fn empty_array(param: &'static str) -> ApiError {
    let message = format!(
        "Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    );
    invalid(400, message).with_code("empty_array").with_param(param)
}

/// Returns a 400 error for a field that is not of the `expected` type.
pub(super) fn invalid_type(param: &'static str, expected: &str) -> ApiError {
    let message = format!("Invalid type for '{param}': expected {expected}.");
    invalid(400, message).with_code("invalid_type").with_param(param)
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&message(self, self.retry_after))
    }
}

/// Returns the message of OpenAI's 429, which states `delay`.
fn message(refusal: &ExceededLimit, delay: Option<Duration>) -> String {
    let ExceededLimit { model, kind, limit, used, requested, .. } = refusal;
    if refusal.retry_after.is_none() {
        return format!(
            "Request too large for {model} in organization {ORGANIZATION} on {kind}: \
             Limit {limit}, Requested {requested}. The input or output tokens must be \
             reduced in order to run successfully. {HELP}"
        );
    }
    let again = delay.map(|delay| format!("Please try again in {}. ", go_duration(delay)));
    format!(
        "Rate limit reached for {model} in organization {ORGANIZATION} on {kind}: \
         Limit {limit}, Used {used}, Requested {requested}. {}{HELP}",
        again.unwrap_or_default()
    )
}

const RATE_LIMIT: &str = "rate_limit_exceeded";
const UNNAMED: &str = "Rate limit reached. Please try again later.";
const SERVER_ERROR: &str =
    "The server had an error while processing your request. Sorry about that!";
const OVERLOADED: &str = "The server is currently overloaded with other requests. \
    Sorry about that! You can retry your request.";
const UNAUTHORIZED: &str = "Incorrect API key provided: sk-****gate. \
    You can find your API key at https://platform.openai.com/account/api-keys.";
const NO_QUOTA: &str = "You exceeded your current quota, please check your plan and billing \
    details. For more information on this error, read the docs: \
    https://platform.openai.com/docs/guides/error-codes/api-errors.";
const HELP: &str = "Visit https://platform.openai.com/account/rate-limits to learn more.";
