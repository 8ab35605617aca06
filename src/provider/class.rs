use http::{HeaderMap, StatusCode};

use super::error::{ApiError, ErrorRules, codes};

/// The meaning of a response for its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Success.
    Ok,
    /// The same request may succeed soon: a rate limit, an overload, a server error.
    Transient,
    /// The same request may succeed once a limit of a day, or of another long window, has reset.
    UntilReset,
    /// The same request will fail again: it is invalid, forbidden, or the account is out of credit.
    Terminal,
}

impl Class {
    /// Returns the name in JSON: `ok`, `transient`, `until_reset`, `terminal`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Transient => "transient",
            Self::UntilReset => "until_reset",
            Self::Terminal => "terminal",
        }
    }
}

/// Returns the class of a response: by the codes of its error if they are known, else by its status.
pub(super) fn of_response(
    rules: &ErrorRules,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Class {
    if status.as_u16() < 400 {
        return Class::Ok;
    }
    let has_delay = || DELAYS.iter().any(|name| headers.contains_key(*name));
    if rules.needs_retry_after && status == StatusCode::TOO_MANY_REQUESTS && !has_delay() {
        return Class::Terminal;
    }
    let error = ApiError::read(body).unwrap_or_default().with_kind_from(headers);
    if codes::is_account_wide(&error, rules) {
        return Class::Terminal;
    }
    let class = by_status(rules, status, &error);
    match headers.get("x-should-retry").map(|value| value.as_bytes()) {
        Some(b"true") if class == Class::Terminal => Class::Transient,
        Some(b"false") if class == Class::Transient => Class::Terminal,
        _ => class,
    }
}

/// Returns the class of an error in the body of a success. The provider had accepted the request, so
/// the same one may succeed unless the error says that the request itself is at fault.
pub(super) fn of_error(rules: &ErrorRules, error: &ApiError) -> Class {
    if codes::is_account_wide(error, rules) {
        return Class::Terminal;
    }
    let numeric = error.code().and_then(|code| StatusCode::from_bytes(code.as_bytes()).ok());
    match numeric {
        Some(status) if status.as_u16() >= 400 => by_status(rules, status, error),
        _ if codes::is_request_error(error, rules) && !codes::is_transient(error, rules) => {
            Class::Terminal
        }
        _ => transient(rules, error),
    }
}

fn by_status(rules: &ErrorRules, status: StatusCode, error: &ApiError) -> Class {
    match status.as_u16() {
        402 => Class::Terminal,
        // 408, 409, 429 and all of 5xx: the official SDKs retry these.
        408 | 409 | 425 | 429 | 500.. => transient(rules, error),
        _ if codes::is_transient(error, rules) => transient(rules, error),
        _ => Class::Terminal,
    }
}

fn transient(rules: &ErrorRules, error: &ApiError) -> Class {
    if codes::is_long_window(error, rules) { Class::UntilReset } else { Class::Transient }
}

/// Headers that a 429 of a rate limit has.
const DELAYS: [&str; 3] = ["retry-after", "retry-after-ms", "x-should-retry"];
