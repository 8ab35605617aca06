//! What errors are told by.

use super::ApiError;

/// Whether every request of the account fails like this: no credit, a spending limit, a bad key.
pub(in crate::provider) fn is_account_wide(error: &ApiError) -> bool {
    error
        .signs()
        .any(|sign| ACCOUNT_WIDE.contains(&sign) || sign.ends_with("_spend_limit_exceeded"))
        || says(error, &["credit balance is too low"])
}

/// Whether the request itself is at fault: it is wrong, too long, forbidden, or filtered.
pub(in crate::provider) fn is_of_request(error: &ApiError) -> bool {
    error.signs().any(|sign| {
        OF_REQUEST.contains(&sign) || OF_REQUEST_STARTS.iter().any(|start| sign.starts_with(start))
    })
}

/// Whether the error, whatever its status, is one that passes.
pub(in crate::provider) fn is_transient(error: &ApiError) -> bool {
    error.signs().any(|sign| TRANSIENT.contains(&sign)) || says(error, TRANSIENT_TEXTS)
}

/// Whether the limit that was reached is one of a day or a month.
pub(in crate::provider) fn is_of_long_window(error: &ApiError) -> bool {
    match error.quota() {
        Some(quota) => quota.contains("PerDay") || quota.contains("PerMonth"),
        None => says(error, LONG_WINDOWS),
    }
}

/// Whether the message says one of these.
pub(super) fn says(error: &ApiError, texts: &[&str]) -> bool {
    texts.iter().any(|text| error.message().contains(text))
}

const ACCOUNT_WIDE: &[&str] = &[
    // OpenAI and those that copy it.
    "insufficient_quota",
    "credit_balance_exhausted",
    "billing_hard_limit_reached",
    "billing_not_active",
    "account_deactivated",
    "invalid_api_key",
    // Anthropic.
    "authentication_error",
    "billing_error",
    // Groq, at a spending limit.
    "blocked_api_access",
    // Google, in `details[].reason` and as status.
    "API_KEY_INVALID",
    "BILLING_DISABLED",
    "CONSUMER_SUSPENDED",
    "UNAUTHENTICATED",
    // AWS.
    "UnrecognizedClientException",
    "InvalidSignatureException",
    "ExpiredTokenException",
    "MissingAuthenticationTokenException",
];

/// Prefixes of codes and types: `invalid_prompt`, `invalid_request_error`, `content_filter`.
const OF_REQUEST_STARTS: &[&str] = &["invalid_", "content_", "unsupported_"];

const OF_REQUEST: &[&str] = &[
    // OpenAI, Azure and those that copy them.
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
    // AWS: names of errors, and of exceptions in event streams.
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

/// Messages of errors that name no type: Bedrock's throttling where a gateway drops its header, a
/// busy Ollama.
const TRANSIENT_TEXTS: &[&str] = &[
    "Too many tokens, please wait",
    "Too many tokens per day",
    "Too many requests, please wait",
    "server busy",
];

/// "on requests per day (RPD)" (OpenAI, Groq), "Too many tokens per day" (Bedrock), "free-models-per-day"
/// (OpenRouter), "limited to 1000 API calls / month" (Cohere).
const LONG_WINDOWS: &[&str] = &[" per day", "-per-day", " / day", " per month", " / month"];
