//! Anthropic's API: Messages, and their token count.

mod error;
mod headers;
mod prompt;
mod request;
mod responder;
mod stream;

use std::time::Duration;

use serde_json::{Value, json};

use self::request::Request;
use super::api_error::ApiError;
use super::exceeded_limit::{ExceededLimit, LimitKind};
use super::fault::FaultKind;
use super::format::{Format, ParsedRequest};
use super::limit_status::LimitStatus;
use super::models;
use super::reply::Headers;

/// Anthropic's format. Input and output have separate limits: input is estimated on arrival and
/// then corrected, output is charged as it is generated. `max_tokens` is not charged, and cache
/// reads are free.
#[derive(Debug)]
pub(super) struct Anthropic;

impl Anthropic {
    /// Returns whether a path without query belongs to this API.
    pub(super) fn matches_path(path: &str) -> bool {
        let plain = path.strip_prefix("/v1").unwrap_or(path);
        plain == "/messages" || plain.starts_with("/messages/")
    }
}

impl Format for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn kinds(&self) -> &'static [LimitKind] {
        &[
            LimitKind::RequestsPerMinute,
            LimitKind::TokensPerMinute,
            LimitKind::InputTokensPerMinute,
            LimitKind::OutputTokensPerMinute,
        ]
    }

    fn read(&self, path: &str, body: &[u8]) -> Result<Box<dyn ParsedRequest>, ApiError> {
        Ok(Box::new(Request::parse(path, body)?))
    }

    fn models(&self, path: &str) -> Option<Value> {
        models::anthropic(path)
    }

    fn limits(&self, limits: &[LimitStatus], now: u64) -> Headers {
        headers::limits(limits, now)
    }

    fn identity(&self, id: &str) -> Headers {
        vec![
            ("anthropic-organization-id", headers::ORGANIZATION.to_owned()),
            ("request-id", format!("req_{id}")),
        ]
    }

    fn retry_headers(&self, delay: Duration) -> Headers {
        headers::retry_headers(delay)
    }

    fn refusal(&self, refusal: &ExceededLimit, _delay: Option<Duration>) -> ApiError {
        error::refusal(refusal)
    }

    fn too_large(&self, _limit: &ExceededLimit) -> ApiError {
        error::too_large()
    }

    fn unnamed_refusal(&self) -> ApiError {
        error::unnamed_refusal()
    }

    fn failure(&self, kind: FaultKind) -> ApiError {
        error::failure(kind)
    }

    fn not_found(&self, _method: &str, _path: &str) -> ApiError {
        error::not_found()
    }

    fn unknown_model(&self, model: &str) -> ApiError {
        error::unknown_model(model)
    }

    fn error(&self, _path: &str, api_error: &ApiError, id: &str) -> Value {
        json!({
            "type": "error",
            "error": {"type": api_error.kind, "message": api_error.message},
            "request_id": format!("req_{id}"),
        })
    }
}
