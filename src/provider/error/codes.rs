//! Codes and texts by which errors are classified.

use super::{ApiError, ErrorRules};

/// Returns true if every request of the account fails like this: no credit, a spending limit, an
/// invalid key. The provider's own transient codes count before the known ones.
pub(in crate::provider) fn is_account_wide(error: &ApiError, rules: &ErrorRules) -> bool {
    if has_code(error, &[rules.transient_codes]) {
        return false;
    }
    has_code(error, &[rules.account_codes, ACCOUNT_WIDE])
        || error.codes().any(|code| code.ends_with("_spend_limit_exceeded"))
        || has_text(error, &["credit balance is too low"])
}

/// Returns true if the request itself is at fault: it is invalid, too long, forbidden, or filtered.
pub(in crate::provider) fn is_request_error(error: &ApiError, rules: &ErrorRules) -> bool {
    has_code(error, &[rules.request_codes, REQUEST])
        || error.codes().any(|code| REQUEST_PREFIXES.iter().any(|prefix| code.starts_with(prefix)))
}

/// Returns true if the error is transient regardless of its status.
pub(in crate::provider) fn is_transient(error: &ApiError, rules: &ErrorRules) -> bool {
    has_code(error, &[rules.transient_codes, TRANSIENT]) || has_text(error, TRANSIENT_TEXTS)
}

/// Returns true if an error with status 400 shows that the request was processed, so that it is charged.
pub(in crate::provider) fn is_charged(error: &ApiError, rules: &ErrorRules) -> bool {
    has_code(error, &[rules.charged_codes, CHARGED])
}

/// Returns true if an error corresponds to a 429, 503 or 529.
pub(in crate::provider) fn is_refusal(error: &ApiError) -> bool {
    let names = [error.code(), error.kind()];
    names.into_iter().flatten().any(|name| REFUSALS.contains(&name))
}

/// Returns true if the limit that was reached is one of a day or longer.
pub(in crate::provider) fn is_long_window(error: &ApiError, rules: &ErrorRules) -> bool {
    match error.quota() {
        Some(quota) => quota.contains("PerDay") || quota.contains("PerMonth"),
        None => has_text(error, LONG_WINDOWS) || has_text(error, rules.long_window_texts),
    }
}

/// Returns true if the message contains one of these texts.
pub(super) fn has_text(error: &ApiError, texts: &[&str]) -> bool {
    texts.iter().any(|text| error.message().contains(text))
}

fn has_code(error: &ApiError, lists: &[&[&str]]) -> bool {
    error.codes().any(|code| lists.iter().any(|list| list.contains(&code)))
}

/// Errors after generation: of a filter (Azure, and gateways to it), and of Groq, which returns the generation
/// that failed.
const CHARGED: &[&str] = &["content_filter", "tool_use_failed", "json_validate_failed"];

const REFUSALS: &[&str] = &[
    "429",
    "503",
    "529",
    "rate_limit_exceeded",
    "rate_limit_error",
    "slow_down",
    "server_is_overloaded",
    "overloaded_error",
];

const ACCOUNT_WIDE: &[&str] = &[
    // OpenAI and compatible servers.
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

/// Messages of errors without a type: Bedrock's throttling if a gateway drops the header, a busy
/// Ollama.
const TRANSIENT_TEXTS: &[&str] = &[
    "Too many tokens, please wait",
    "Too many tokens per day",
    "Too many requests, please wait",
    "server busy",
];

/// "on requests per day (RPD)" (OpenAI, Groq), "Too many tokens per day" (Bedrock), "free-models-per-day"
/// (OpenRouter), "limited to 1000 API calls / month" (Cohere).
const LONG_WINDOWS: &[&str] = &[" per day", "-per-day", " / day", " per month", " / month"];
