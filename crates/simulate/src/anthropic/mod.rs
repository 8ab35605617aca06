//! Anthropic's API: Messages, and their token count.

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
            ("anthropic-organization-id", ORGANIZATION.to_owned()),
            ("request-id", format!("req_{id}")),
        ]
    }

    fn retry_headers(&self, delay: Duration) -> Headers {
        headers::retry_headers(delay)
    }

    fn refusal(&self, refusal: &ExceededLimit, _delay: Option<Duration>) -> ApiError {
        ApiError::new(429, RATE_LIMIT, message(refusal))
    }

    fn too_large(&self, _limit: &ExceededLimit) -> ApiError {
        ApiError::new(429, RATE_LIMIT, LONG_CONTEXT)
    }

    fn unnamed_refusal(&self) -> ApiError {
        ApiError::new(429, RATE_LIMIT, UNNAMED)
    }

    fn failure(&self, kind: FaultKind) -> ApiError {
        match kind {
            FaultKind::ServerError => ApiError::new(500, "api_error", "Internal server error"),
            FaultKind::Overloaded => ApiError::new(529, "overloaded_error", "Overloaded"),
            FaultKind::Unauthorized => {
                ApiError::new(401, "authentication_error", "invalid x-api-key")
            }
            FaultKind::InsufficientQuota => {
                invalid(SPENT).with_headers(vec![("x-should-retry", "false".to_owned())])
            }
            FaultKind::RateLimited | FaultKind::TooLarge | FaultKind::DailyLimit => {
                self.unnamed_refusal()
            }
        }
    }

    fn not_found(&self, _method: &str, _path: &str) -> ApiError {
        ApiError::new(404, "not_found_error", "Not Found")
    }

    fn unknown_model(&self, model: &str) -> ApiError {
        ApiError::new(404, "not_found_error", format!("model: {model}"))
    }

    fn error(&self, _path: &str, api_error: &ApiError, id: &str) -> Value {
        json!({
            "type": "error",
            "error": {"type": api_error.kind, "message": api_error.message},
            "request_id": format!("req_{id}"),
        })
    }
}

fn invalid(message: impl Into<Box<str>>) -> ApiError {
    ApiError::new(400, "invalid_request_error", message)
}

/// Returns the message of a refusal, as Anthropic words it.
fn message(refusal: &ExceededLimit) -> String {
    let what = match refusal.kind {
        LimitKind::InputTokensPerMinute => "input tokens per minute",
        LimitKind::OutputTokensPerMinute => "output tokens per minute",
        LimitKind::TokensPerMinute => "tokens per minute",
        LimitKind::RequestsPerMinute => "requests per minute",
        LimitKind::RequestsPerDay => "requests per day",
        LimitKind::Concurrency => "concurrent requests",
        LimitKind::Spend => "micro-dollars per ten minutes",
    };
    let limit = refusal.limit;
    format!(
        "This request would exceed your organization's rate limit of {limit} {what} \
         (org: {ORGANIZATION}, model: {}). For details, refer to: \
         https://docs.claude.com/en/api/rate-limits. You can see the response headers for current \
         usage. Please reduce the prompt length or the maximum tokens requested, or try again later.",
        refusal.model
    )
}

/// The organization of all requests.
const ORGANIZATION: &str = "00000000-0000-4000-8000-706163656c69";

const UNNAMED: &str =
    "This request would exceed your account's rate limit. Please try again later.";
const RATE_LIMIT: &str = "rate_limit_error";
const SPENT: &str = "You have reached your specified API usage limits. You will regain access on 2099-01-01 at \
                     00:00 UTC.";
const LONG_CONTEXT: &str = "Extra usage is required for long context requests.";
