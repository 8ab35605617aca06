//! Codes and texts by which errors are classified.

use super::{ApiError, ErrorRules};

/// Returns true if the request itself is at fault: it is invalid, too long, forbidden, or filtered.
pub(crate) fn is_request_error(error: &ApiError, rules: &ErrorRules) -> bool {
    has_code(error, &[rules.request_codes, REQUEST])
        || error.codes().any(|code| REQUEST_PREFIXES.iter().any(|prefix| code.starts_with(prefix)))
}

/// Returns true if the error is transient regardless of its status.
pub(crate) fn is_transient(error: &ApiError, rules: &ErrorRules) -> bool {
    has_code(error, &[rules.transient_codes, TRANSIENT])
}

/// Returns true if an error with status 400 shows that the request was processed, so that it is charged.
pub(crate) fn is_charged(error: &ApiError, rules: &ErrorRules) -> bool {
    has_code(error, &[rules.charged_codes, CHARGED])
}

fn has_code(error: &ApiError, lists: &[&[&str]]) -> bool {
    error.codes().any(|code| lists.iter().any(|list| list.contains(&code)))
}

/// Errors after generation: of a filter (Azure, and gateways to it), and of Groq, which returns the generation
/// that failed.
const CHARGED: &[&str] = &["content_filter", "tool_use_failed", "json_validate_failed"];

/// Prefixes of codes and types: `invalid_prompt`, `invalid_request_error`, `content_filter`.
const REQUEST_PREFIXES: &[&str] = &["invalid_", "content_", "unsupported_"];

const REQUEST: &[&str] = &[
    // OpenAI, Azure and compatible servers.
    "context_length_exceeded",
    "string_above_max_length",
    "model_not_found",
    "image_content_policy_violation",
    "vector_store_not_found",
    // Groq.
    "tool_use_failed",
    "json_validate_failed",
    // Anthropic.
    "not_found_error",
    "permission_error",
    "request_too_large",
    // Google, as status.
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
    "NOT_FOUND",
    "PERMISSION_DENIED",
    // AWS: exceptions in event streams.
    "validationException",
    "ValidationException",
    "AccessDeniedException",
    "ResourceNotFoundException",
];

const TRANSIENT: &[&str] = &[
    "rate_limit_exceeded",
    "rate_limit_error",
    "slow_down",
    "server_is_overloaded",
    "overloaded_error",
    "server_error",
    "internal_server_error",
    "api_error",
    "timeout",
    // Google.
    "RESOURCE_EXHAUSTED",
    "UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "INTERNAL",
    "ABORTED",
    // AWS: error types, and exceptions in event streams.
    "ThrottlingException",
    "throttlingException",
    "TooManyRequestsException",
    "ServiceUnavailableException",
    "serviceUnavailableException",
    "ModelNotReadyException",
    "ModelTimeoutException",
    "modelTimeoutException",
    "ModelErrorException",
    "ModelStreamErrorException",
    "modelStreamErrorException",
    "InternalServerException",
    "internalServerException",
];
