//! An error body, in OpenAI's shape.

use serde_json::json;

use super::refusal::Refusal;

/// Why a request got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) status: u16,
    message: String,
    kind: &'static str,
    param: Option<&'static str>,
    code: Option<&'static str>,
}

impl Rejection {
    /// An `invalid_request_error` without a code.
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        let kind = "invalid_request_error";
        Self { status, message: message.into(), kind, param: None, code: None }
    }

    /// 400: a field is missing.
    pub(super) fn missing(param: &'static str) -> Self {
        let message = format!("Missing required parameter: '{param}'.");
        Self::new(400, message).with_code("missing_required_parameter").about(param)
    }

    /// 400: a field has another type than `expected`.
    pub(super) fn mistyped(param: &'static str, expected: &str) -> Self {
        let message = format!("Invalid type for '{param}': expected {expected}.");
        Self::new(400, message).with_code("invalid_type").about(param)
    }

    pub(super) fn of_type(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    pub(super) fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(super) fn about(self, param: &'static str) -> Self {
        Self { param: Some(param), ..self }
    }

    /// The body.
    pub(super) fn json(&self) -> Vec<u8> {
        let Self { message, kind, param, code, .. } = self;
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
            .to_string()
            .into_bytes()
    }
}

impl From<&Refusal> for Rejection {
    fn from(refusal: &Refusal) -> Self {
        Self::new(429, refusal.to_string())
            .of_type(refusal.kind.error_type())
            .with_code("rate_limit_exceeded")
    }
}
