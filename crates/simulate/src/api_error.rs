//! Error responses, before a format writes them.

use serde_json::Value;

use super::reply::Headers;

/// An error response, before its format writes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApiError {
    pub(super) status: u16,
    pub(super) message: Box<str>,
    /// The `type` of OpenAI and Anthropic, the `status` of Gemini.
    pub(super) kind: &'static str,
    pub(super) param: Option<&'static str>,
    pub(super) code: Option<&'static str>,
    /// Gemini's error details.
    pub(super) details: Box<[Value]>,
    /// Headers of the error, such as the retry time.
    pub(super) headers: Headers,
}

impl ApiError {
    pub(super) fn new(status: u16, kind: &'static str, message: impl Into<Box<str>>) -> Self {
        Self {
            status,
            message: message.into(),
            kind,
            param: None,
            code: None,
            details: Box::default(),
            headers: Headers::new(),
        }
    }

    pub(super) fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(super) fn with_param(self, param: &'static str) -> Self {
        Self { param: Some(param), ..self }
    }

    pub(super) fn with_details(self, details: Vec<Value>) -> Self {
        Self { details: details.into(), ..self }
    }

    pub(super) fn with_headers(self, headers: Headers) -> Self {
        Self { headers, ..self }
    }
}
