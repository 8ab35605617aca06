use http::{HeaderMap, StatusCode};
use paceline_limiter::Timestamp;
use paceline_limiter::limiter::RefusalKind;

use crate::error::{ApiError, ErrorRules, codes};
use crate::refusal;

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

/// Returns the class of a response: by its refusal, else by the codes of its error and its status.
pub(super) fn of_response(
    rules: &ErrorRules,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Class {
    if status.as_u16() < 400 {
        return Class::Ok;
    }
    // The kind doesn't depend on the time.
    let refusal = refusal::of_response(rules, status, headers, body, Timestamp::UNIX_EPOCH);
    let class = match &refusal {
        Some(refusal) => of_kind(refusal.kind),
        None => {
            let error = ApiError::read(body).unwrap_or_default().with_kind_from(headers);
            by_status(rules, status, &error)
        }
    };
    let is_account = refusal.is_some_and(|refusal| refusal.kind == RefusalKind::Account);
    match headers.get("x-should-retry").map(|value| value.as_bytes()) {
        Some(b"true") if class == Class::Terminal && !is_account => Class::Transient,
        Some(b"false") if class == Class::Transient => Class::Terminal,
        _ => class,
    }
}

/// Returns the class of an error in the body of a success. The provider had accepted the request, so
/// the same one may succeed unless the error says that the request itself is at fault.
pub(super) fn of_error(rules: &ErrorRules, error: &ApiError) -> Class {
    if let Some(refusal) = refusal::of_error(rules, error, Timestamp::UNIX_EPOCH) {
        return of_kind(refusal.kind);
    }
    let numeric = error.code().and_then(|code| StatusCode::from_bytes(code.as_bytes()).ok());
    match numeric {
        Some(status) if status.as_u16() >= 400 => by_status(rules, status, error),
        _ if codes::is_request_error(error, rules) && !codes::is_transient(error, rules) => {
            Class::Terminal
        }
        _ => Class::Transient,
    }
}

fn of_kind(kind: RefusalKind) -> Class {
    match kind {
        RefusalKind::Rate | RefusalKind::Capacity => Class::Transient,
        RefusalKind::Window => Class::UntilReset,
        RefusalKind::Request | RefusalKind::Account => Class::Terminal,
        _ => Class::Terminal,
    }
}

fn by_status(rules: &ErrorRules, status: StatusCode, error: &ApiError) -> Class {
    match status.as_u16() {
        // 408, 409, 429 and all of 5xx: the official SDKs retry these.
        408 | 409 | 425 | 429 | 500.. => Class::Transient,
        _ if codes::is_transient(error, rules) => Class::Transient,
        _ => Class::Terminal,
    }
}
