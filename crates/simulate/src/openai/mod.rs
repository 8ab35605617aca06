//! OpenAI's API: chat completions, completions, embeddings, Responses, and their token count.

mod charge;
mod headers;
mod prompt;
mod request;
mod responder;
mod response;
mod stream;
mod tools;

use std::time::Duration;

use serde_json::{Value, json};

pub(super) use self::headers::go_duration;

use self::request::Request;
use super::api_error::ApiError;
use super::exceeded_limit::{ExceededLimit, LimitKind};
use super::fault::FaultKind;
use super::format::{Format, ParsedRequest};
use super::limit_status::LimitStatus;
use super::models;
use super::reply::Headers;

/// OpenAI's format. It limits requests and tokens, as its charge rule counts them.
#[derive(Debug)]
pub(super) struct OpenAi;

impl Format for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn kinds(&self) -> &'static [LimitKind] {
        &[LimitKind::RequestsPerMinute, LimitKind::TokensPerMinute, LimitKind::RequestsPerDay]
    }

    fn read(&self, path: &str, body: &[u8]) -> Result<Box<dyn ParsedRequest>, ApiError> {
        Ok(Box::new(Request::parse(path, body)?))
    }

    fn models(&self, path: &str) -> Option<Value> {
        models::openai(path)
    }

    fn limits(&self, limits: &[LimitStatus], _now: u64) -> Headers {
        headers::limits(limits)
    }

    fn identity(&self, id: &str) -> Headers {
        vec![
            ("openai-organization", ORGANIZATION.to_owned()),
            ("x-request-id", format!("req_{id}")),
        ]
    }

    fn retry_headers(&self, delay: Duration) -> Headers {
        headers::retry_headers(delay)
    }

    fn refusal(&self, refusal: &ExceededLimit, delay: Option<Duration>) -> ApiError {
        let kind = match refusal.kind {
            LimitKind::RequestsPerMinute | LimitKind::RequestsPerDay => "requests",
            LimitKind::Concurrency => "concurrency",
            LimitKind::Spend => "spend",
            _ => "tokens",
        };
        ApiError::new(429, kind, refusal.message(delay)).with_code(RATE_LIMIT)
    }

    fn unnamed_refusal(&self) -> ApiError {
        ApiError::new(429, RATE_LIMIT, UNNAMED).with_code(RATE_LIMIT)
    }

    fn failure(&self, kind: FaultKind) -> ApiError {
        match kind {
            FaultKind::ServerError => ApiError::new(500, "server_error", SERVER_ERROR),
            FaultKind::Overloaded => {
                ApiError::new(503, "server_error", OVERLOADED).with_code("server_is_overloaded")
            }
            FaultKind::Unauthorized => invalid(401, UNAUTHORIZED).with_code("invalid_api_key"),
            FaultKind::InsufficientQuota => {
                ApiError::new(429, "insufficient_quota", NO_QUOTA).with_code("insufficient_quota")
            }
            FaultKind::RateLimited | FaultKind::TooLarge | FaultKind::DailyLimit => {
                self.unnamed_refusal()
            }
        }
    }

    fn not_found(&self, method: &str, path: &str) -> ApiError {
        invalid(404, format!("Invalid URL ({method} {path})"))
    }

    fn unknown_model(&self, model: &str) -> ApiError {
        let message =
            format!("The model `{model}` does not exist or you do not have access to it.");
        invalid(404, message).with_code("model_not_found")
    }

    fn error(&self, _path: &str, api_error: &ApiError, _id: &str) -> Value {
        let ApiError { message, kind, param, code, .. } = api_error;
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
    }
}

/// Returns an `invalid_request_error` without a code.
fn invalid(status: u16, message: impl Into<Box<str>>) -> ApiError {
    ApiError::new(status, "invalid_request_error", message)
}

/// Returns a 400 error for a missing field.
fn missing_parameter(param: &'static str) -> ApiError {
    let message = format!("Missing required parameter: '{param}'.");
    invalid(400, message).with_code("missing_required_parameter").with_param(param)
}

/// Returns a 400 error for an array without elements.
fn empty_array(param: &'static str) -> ApiError {
    let message = format!(
        "Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    );
    invalid(400, message).with_code("empty_array").with_param(param)
}

/// Returns a 400 error for a field that is not of the `expected` type.
fn invalid_type(param: &'static str, expected: &str) -> ApiError {
    let message = format!("Invalid type for '{param}': expected {expected}.");
    invalid(400, message).with_code("invalid_type").with_param(param)
}

/// The organization of all requests.
pub(super) const ORGANIZATION: &str = "org-paceline";

const RATE_LIMIT: &str = "rate_limit_exceeded";
const UNNAMED: &str = "Rate limit reached. Please try again later.";
const SERVER_ERROR: &str =
    "The server had an error while processing your request. Sorry about that!";
const OVERLOADED: &str = "The server is currently overloaded with other requests. \
    Sorry about that! You can retry your request.";
const UNAUTHORIZED: &str = "Incorrect API key provided: sk-****gate. \
    You can find your API key at https://platform.openai.com/account/api-keys.";
const NO_QUOTA: &str = "You exceeded your current quota, please check your plan and billing \
    details. For more information on this error, read the docs: \
    https://platform.openai.com/docs/guides/error-codes/api-errors.";
