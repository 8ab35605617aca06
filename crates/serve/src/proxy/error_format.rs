use axum::body::Body;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::headers::prevent_retry;
use crate::problem::Problem;
use paceline::limiter::{AcquireError, Code, Refused};
use paceline::provider::{ANTHROPIC, GEMINI, Profile, Refusal, VERTEX, VERTEX_ANTHROPIC};
use paceline_limiter::seam;

/// The provider whose error format the clients of an upstream expect.
///
/// An error of the proxy itself is a problem document that also has an `error` member in the provider's
/// format, so that an SDK raises the same exception as for the provider, with its own retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorFormat {
    /// OpenAI's, and that of compatible providers.
    OpenAi,
    Anthropic,
    Google,
}

impl ErrorFormat {
    pub(super) fn of(profile: Profile) -> Self {
        match profile.built_in() {
            profile if profile == ANTHROPIC || profile == VERTEX_ANTHROPIC => Self::Anthropic,
            profile if profile == GEMINI || profile == VERTEX => Self::Google,
            _ => Self::OpenAi,
        }
    }

    /// Returns the format that the clients of a path expect which names no upstream.
    pub(super) fn of_path(path: &str) -> Self {
        let has =
            |segment: &str| path.split('/').any(|other| other.split(':').next() == Some(segment));
        match path {
            _ if has("messages") || has("complete") => Self::Anthropic,
            _ if has("v1beta") || has("v1alpha") || path.contains(":generateContent") => {
                Self::Google
            }
            _ => Self::OpenAi,
        }
    }

    /// Returns the path of the base URL that the official SDKs of the API need for this upstream: those of Anthropic and
    /// Google add the version.
    pub(super) fn base_path(self, upstream: &str) -> String {
        match self {
            Self::OpenAi => format!("/{upstream}/v1"),
            Self::Anthropic | Self::Google => format!("/{upstream}"),
        }
    }

    /// Returns the response to a request that the limiter refused. If a retry cannot succeed, a header
    /// prevents retries by the SDKs of OpenAI and Anthropic, and the status of a request that can never be sent is 400.
    pub(super) fn refusal(self, refusal: Response<Bytes>, error: &AcquireError) -> Response<Body> {
        let mut document: Value = serde_json::from_slice(refusal.body()).unwrap_or_default();
        let retry_after = refusal.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|seconds| seconds.parse::<u64>().ok());
        if let Some(seconds) = retry_after {
            document["retry_after"] = seconds.into();
        }
        let detail = detail(error, refusal.headers(), &document);
        document["detail"] = detail.as_str().into();
        let code = document.get("code").and_then(Value::as_str).unwrap_or_default();
        // A total is raised or reset at some time.
        let is_impossible = retry_after.is_none()
            && refusal.status().is_client_error()
            && code != Code::TotalExceeded.as_str();
        let (status, message) = match error.refused().and_then(Refused::refusal) {
            Some(refusal) => {
                document["detail"] = (&*refusal.text).into();
                (status_of(refusal), refusal.text.to_string())
            }
            None if is_impossible => (StatusCode::BAD_REQUEST, message(&detail, retry_after)),
            None => (refusal.status(), message(&detail, retry_after)),
        };
        if status != refusal.status() {
            document["status"] = status.as_u16().into();
        }
        let mut response = refusal.map(|_| Body::from(self.with_error(document, &message)));
        *response.status_mut() = status;
        if retry_after.is_none() {
            prevent_retry(response.headers_mut());
        }
        response
    }

    /// Returns the response for another error.
    pub(super) fn problem(self, problem: Problem) -> Response<Body> {
        let document = serde_json::to_value(&problem).unwrap_or_default();
        let detail = document.get("detail").and_then(Value::as_str).unwrap_or_default();
        let message = format!("paceline: {detail}");
        let mut response = problem.into_response();
        *response.body_mut() = Body::from(self.with_error(document, &message));
        // The SDKs of OpenAI and Anthropic repeat 408, 409, 429 and 5xx by themselves; other clients repeat more.
        if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&response.status()) {
            prevent_retry(response.headers_mut());
        }
        response
    }

    fn with_error(self, document: Value, message: &str) -> String {
        let mut document: Map<String, Value> = match document {
            Value::Object(document) => document,
            _ => Map::new(),
        };
        let error = self.error(&document, message);
        if self == Self::Google {
            // Google's SDK prefers a top-level `status` to that of the error.
            document.remove("status");
        }
        document.insert("error".to_owned(), error);
        Value::Object(document).to_string()
    }

    fn error(self, document: &Map<String, Value>, message: &str) -> Value {
        let status = document.get("status").and_then(Value::as_u64).unwrap_or(500);
        let status = u16::try_from(status).unwrap_or(500);
        match self {
            Self::OpenAi => {
                let (kind, code) = openai(status, document);
                json!({"message": message, "type": kind, "param": null, "code": code})
            }
            Self::Anthropic => json!({"type": anthropic(status), "message": message}),
            Self::Google => {
                let delay = document.get("retry_after").and_then(Value::as_u64);
                let delay = delay.map(
                    |seconds| json!({"@type": RETRY_INFO, "retryDelay": format!("{seconds}s")}),
                );
                let details: Vec<Value> = delay.into_iter().collect();
                json!({
                    "code": status, "message": message, "status": google(status), "details": details,
                })
            }
        }
    }
}

/// Formats a delay in OpenAI's words, which clients parse.
fn message(detail: &str, retry_after: Option<u64>) -> String {
    match retry_after {
        Some(seconds) => {
            format!("paceline: Rate limit reached: {detail}. Please try again in {seconds}s.")
        }
        None => format!("paceline: {detail}. Retrying will not help."),
    }
}

/// Returns which limit of whose key refuses, what was needed, and what is left of it.
fn detail(error: &AcquireError, headers: &HeaderMap, document: &Value) -> String {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    let scope = text("scope").filter(|scope| !scope.is_empty()).unwrap_or("client");
    if text("code") == Some("unknown_key") {
        return format!("no quota covers this {scope}");
    }
    // A key may be a secret.
    let whose = text("key").map_or_else(|| format!("this {scope}"), str::to_owned);
    let limit = error.refused().and_then(|refused| {
        document.get("retry_after")?;
        Some((refused.dimension.as_ref()?, refused.need?))
    });
    if let Some((dimension, need)) = limit {
        let policy =
            document.get("violated-policies").and_then(|policies| policies.get(0)?.as_str());
        let left = policy.and_then(|policy| parameter(headers, "ratelimit", policy, 'r'));
        // The fields of a response state no amounts of money.
        let left = left.map_or("limit ".to_owned(), |left| {
            format!("{} left of ", seam::shown_amount(dimension, left))
        });
        let window = policy.and_then(|policy| parameter(headers, "ratelimit-policy", policy, 'w'));
        return format!(
            "{dimension}{} of {whose}: needs {}, {left}{}",
            window.map(per).unwrap_or_default(),
            seam::shown_amount(dimension, need.amount),
            seam::shown_amount(dimension, need.limit)
        );
    }
    let (text, key) = match error {
        AcquireError::QueueFull { key, .. } | AcquireError::Removed { key } => {
            (error.to_string(), key)
        }
        _ => match error.refused() {
            Some(refused) => (refused.to_string(), &refused.key),
            None => return error.to_string(),
        },
    };
    match text.strip_prefix(&**key) {
        Some(rest) => format!("{whose}{rest}"),
        None => text,
    }
}

/// Returns a window in words.
fn per(seconds: u64) -> String {
    match seconds {
        1 => " per second".to_owned(),
        60 => " per minute".to_owned(),
        3_600 => " per hour".to_owned(),
        86_400 => " per day".to_owned(),
        seconds => format!(" per {seconds} s"),
    }
}

/// Returns a parameter that a header of rate limits states for a policy.
fn parameter(headers: &HeaderMap, name: &str, policy: &str, parameter: char) -> Option<u64> {
    let limits = headers.get(name)?.to_str().ok()?;
    let start = format!("\"{policy}\";");
    let limit = limits.split(", ").find_map(|limit| limit.strip_prefix(&start))?;
    let value =
        limit.split(';').find_map(|part| part.strip_prefix(parameter)?.strip_prefix('='))?;
    value.parse().ok()
}

/// Returns the status with which the provider refused the account.
fn status_of(refusal: &Refusal) -> StatusCode {
    let status = refusal.status.and_then(|status| StatusCode::from_u16(status).ok());
    status.filter(|status| status.as_u16() >= 400).unwrap_or(StatusCode::PAYMENT_REQUIRED)
}

fn openai(status: u16, document: &Map<String, Value>) -> (Value, Value) {
    let text = |name: &str| document.get(name).cloned().unwrap_or_default();
    match status {
        _ if text("code") == Code::AccountRefused.as_str() => {
            (json!("insufficient_quota"), json!("insufficient_quota"))
        }
        429 if text("dimension") == "requests" => (json!("requests"), json!(RATE_LIMIT)),
        429 => (json!("tokens"), json!(RATE_LIMIT)),
        500.. => (json!("server_error"), text("code")),
        401 => (json!("invalid_request_error"), json!("invalid_api_key")),
        _ => (json!("invalid_request_error"), text("code")),
    }
}

/// <https://docs.anthropic.com/en/api/errors>
fn anthropic(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

/// `google.rpc.Code`
fn google(status: u16) -> &'static str {
    match StatusCode::from_u16(status) {
        Ok(StatusCode::UNAUTHORIZED) => "UNAUTHENTICATED",
        Ok(StatusCode::FORBIDDEN) => "PERMISSION_DENIED",
        Ok(StatusCode::NOT_FOUND) => "NOT_FOUND",
        Ok(StatusCode::TOO_MANY_REQUESTS) => "RESOURCE_EXHAUSTED",
        Ok(StatusCode::GATEWAY_TIMEOUT) => "DEADLINE_EXCEEDED",
        Ok(status) if status.is_server_error() => "UNAVAILABLE",
        _ => "INVALID_ARGUMENT",
    }
}

const RATE_LIMIT: &str = "rate_limit_exceeded";

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
