use axum::body::Body;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::problem::Problem;
use tollgate::provider::{ANTHROPIC, GEMINI, Profile, VERTEX, VERTEX_ANTHROPIC};

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

    /// Returns the response to a request that the limiter refused. If a retry cannot succeed, a header
    /// prevents retries by the SDKs of OpenAI and Anthropic.
    pub(super) fn refusal(self, refusal: Response<Bytes>) -> Response<Body> {
        let mut document: Value = serde_json::from_slice(refusal.body()).unwrap_or_default();
        let retry_after = refusal.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        if let Some(seconds) = retry_after.and_then(|seconds| seconds.parse::<u64>().ok()) {
            document["retry_after"] = seconds.into();
        }
        let mut response = refusal.map(|_| Body::from(self.with_error(document)));
        if response.headers().get(RETRY_AFTER).is_none() {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }

    /// Returns the response for another error.
    pub(super) fn problem(self, problem: Problem) -> Response<Body> {
        let document = serde_json::to_value(&problem).unwrap_or_default();
        let mut response = problem.into_response();
        *response.body_mut() = Body::from(self.with_error(document));
        response
    }

    fn with_error(self, document: Value) -> String {
        let mut document: Map<String, Value> = match document {
            Value::Object(document) => document,
            _ => Map::new(),
        };
        let error = self.error(&document);
        if self == Self::Google {
            // Google's SDK prefers a top-level `status` to that of the error.
            document.remove("status");
        }
        document.insert("error".to_owned(), error);
        Value::Object(document).to_string()
    }

    fn error(self, document: &Map<String, Value>) -> Value {
        let status = document.get("status").and_then(Value::as_u64).unwrap_or(500);
        let status = u16::try_from(status).unwrap_or(500);
        let message = message(document);
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
fn message(document: &Map<String, Value>) -> String {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    if let Some(detail) = text("detail") {
        return format!("tollgate: {detail}");
    }
    if text("code") == Some("unknown_key") {
        let scope = text("scope").filter(|scope| !scope.is_empty()).unwrap_or("client");
        return format!("tollgate: no quota covers this {scope}. Retrying will not help.");
    }
    let mut limit = text("dimension").or(text("code")).unwrap_or("limit").to_owned();
    if let Some(key) = text("key") {
        limit = format!("{limit} of {key}");
    }
    match document.get("retry_after").and_then(Value::as_u64) {
        Some(seconds) => {
            format!("tollgate: Rate limit reached: {limit}. Please try again in {seconds}s.")
        }
        None if text("code") == Some("exceeds_capacity") => {
            format!("tollgate: Request exceeds the rate limit: {limit}. Retrying will not help.")
        }
        None => format!("tollgate: Rate limit reached: {limit}. Retrying will not help."),
    }
}

fn openai(status: u16, document: &Map<String, Value>) -> (Value, Value) {
    let text = |name: &str| document.get(name).cloned().unwrap_or_default();
    match status {
        429 if text("dimension") == "requests" => (json!("requests"), json!(RATE_LIMIT)),
        429 => (json!("tokens"), json!(RATE_LIMIT)),
        500.. => (json!("server_error"), text("code")),
        _ => (json!("invalid_request_error"), text("code")),
    }
}

/// <https://docs.anthropic.com/en/api/errors>
fn anthropic(status: u16) -> &'static str {
    match status {
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
        Ok(StatusCode::NOT_FOUND) => "NOT_FOUND",
        Ok(StatusCode::TOO_MANY_REQUESTS) => "RESOURCE_EXHAUSTED",
        Ok(StatusCode::NOT_IMPLEMENTED) => "UNIMPLEMENTED",
        Ok(StatusCode::GATEWAY_TIMEOUT) => "DEADLINE_EXCEEDED",
        Ok(status) if status.is_server_error() => "UNAVAILABLE",
        _ => "INVALID_ARGUMENT",
    }
}

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

const RATE_LIMIT: &str = "rate_limit_exceeded";

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
