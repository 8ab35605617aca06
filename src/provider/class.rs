use http::{HeaderMap, StatusCode};

use super::ApiError;
use super::error::signs;

/// What a response means for the request that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// No error.
    Ok,
    /// The same request may succeed soon: a rate limit, an overload, a failure of the server.
    Transient,
    /// It may succeed once a limit of a day, or of another long window, has reset.
    UntilReset,
    /// It will fail again: it is wrong, forbidden, or out of credit.
    Terminal,
}

impl Class {
    /// Its name in JSON: `ok`, `transient`, `until_reset`, `terminal`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Transient => "transient",
            Self::UntilReset => "until_reset",
            Self::Terminal => "terminal",
        }
    }
}

/// The class at most providers: by the error's own signs where they are clear, else by the status.
pub(super) fn of_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Class {
    if status.as_u16() < 400 {
        return Class::Ok;
    }
    let error = ApiError::read(body).unwrap_or_default().with_kind_of(headers);
    if signs::is_account_wide(&error) {
        return Class::Terminal;
    }
    let class = by_status(status, &error);
    match headers.get("x-should-retry").map(|value| value.as_bytes()) {
        Some(b"true") if class == Class::Terminal => Class::Transient,
        Some(b"false") if class == Class::Transient => Class::Terminal,
        _ => class,
    }
}

/// Anthropic's: a 429 that doesn't say when to come back is that of a spending limit.
pub(super) fn anthropic(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Class {
    let class = of_response(status, headers, body);
    let says_when = ["retry-after", "retry-after-ms", "x-should-retry"];
    match status {
        StatusCode::TOO_MANY_REQUESTS if !says_when.iter().any(|n| headers.contains_key(*n)) => {
            Class::Terminal
        }
        _ => class,
    }
}

/// The class of an error in the body of a success. The provider had accepted the request, so the same
/// one may succeed unless the error says that the request itself is at fault.
pub(super) fn of_error(error: &ApiError) -> Class {
    if signs::is_account_wide(error) {
        return Class::Terminal;
    }
    let numeric = error.code().and_then(|code| StatusCode::from_bytes(code.as_bytes()).ok());
    match numeric {
        Some(status) if status.as_u16() >= 400 => by_status(status, error),
        _ if signs::is_of_request(error) && !signs::is_transient(error) => Class::Terminal,
        _ => transient(error),
    }
}

fn by_status(status: StatusCode, error: &ApiError) -> Class {
    match status.as_u16() {
        402 => Class::Terminal,
        // 408, 409, 429 and all of 5xx: what the official SDKs try again.
        408 | 409 | 425 | 429 | 500.. => transient(error),
        _ if signs::is_transient(error) => transient(error),
        _ => Class::Terminal,
    }
}

fn transient(error: &ApiError) -> Class {
    if signs::is_of_long_window(error) { Class::UntilReset } else { Class::Transient }
}
