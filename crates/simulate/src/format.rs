//! The interface of an API format: parsing of requests, and writing of responses, headers and
//! errors.
//!
//! Limits are enforced in the same way for all formats; a format defines the kinds of limits and the
//! charge of a request.

use std::fmt::Debug;
use std::time::Duration;

use serde_json::Value;

use super::api_error::ApiError;
use super::cache::Prefix;
use super::exceeded_limit::{ExceededLimit, LimitKind};
use super::fault::FaultKind;
use super::limit_status::LimitStatus;
use super::limit_terms::LimitTerms;
use super::meter::Meter;
use super::reply::{Headers, ReplyBody, SimulatedReply};
use super::request_charge::RequestCharge;
use super::settings::{ChargeRule, Settings};
use crate::usage::SimulatedUsage;

/// The API format of one provider.
pub(super) trait Format: Debug + Sync {
    /// Returns the name of the format, which separates its limits from those of other formats.
    fn name(&self) -> &'static str;

    /// Returns the kinds of limits that the format has.
    fn kinds(&self) -> &'static [LimitKind];

    /// Creates a meter for a limit.
    fn meter(&self, _kind: LimitKind, terms: LimitTerms, settings: &Settings) -> Box<dyn Meter> {
        terms.meter(settings.algorithm)
    }

    /// Parses a POST of `body` to `path`, which includes the query.
    fn read(&self, path: &str, body: &[u8]) -> Result<Box<dyn ParsedRequest>, ApiError>;

    /// Returns the models, or the model, of a GET of `path`, which has no query; `None` for other paths.
    fn models(&self, path: &str) -> Option<Value>;

    /// Returns the rate-limit headers of a response, which state these limits.
    fn limits(&self, limits: &[LimitStatus], now: u64) -> Headers;

    /// Returns the headers that identify the organization and the request, whose `id` has 32
    /// digits; also for errors.
    fn identity(&self, id: &str) -> Headers;

    /// Returns the headers that state the delay of a refusal, rounded up, so that a client that waits
    /// that long is admitted.
    fn retry_headers(&self, delay: Duration) -> Headers;

    /// Returns the error for a request over a limit, which states `delay` in its body where the
    /// format does.
    fn refusal(&self, refusal: &ExceededLimit, delay: Option<Duration>) -> ApiError;

    /// Returns the error for a request over a limit that it doesn't name.
    fn unnamed_refusal(&self) -> ApiError;

    /// Returns the error of a request that is larger than a limit.
    fn too_large(&self, limit: &ExceededLimit) -> ApiError {
        self.refusal(limit, None)
    }

    /// Returns the error for a simulated failure; of one that a limit is the reason of, without its name.
    fn failure(&self, kind: FaultKind) -> ApiError;

    /// Returns the error for an unknown method or path.
    fn not_found(&self, method: &str, path: &str) -> ApiError;

    /// Returns the error for a model that the provider doesn't have.
    fn unknown_model(&self, model: &str) -> ApiError;

    /// Returns the body of an error response to `path`.
    fn error(&self, path: &str, api_error: &ApiError, id: &str) -> Value;

    /// Returns the reply of an error to a request to `path`, without latency.
    fn error_reply(&self, path: &str, api_error: &ApiError, id: &str) -> SimulatedReply {
        let body = self.error(path, api_error, id).to_string();
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.extend(api_error.headers.iter().cloned());
        SimulatedReply {
            status: api_error.status,
            headers,
            body: ReplyBody::Json(body.into()),
            latency: Duration::ZERO,
            charged: 0,
            spent: 0,
            usage: SimulatedUsage::default(),
        }
    }
}

/// A parsed request.
pub(super) trait ParsedRequest: Debug {
    /// Returns the requested model.
    fn model(&self) -> &str;

    /// Returns the tokens of the prompt as reported in the usage, cached ones included; 0 if the
    /// request does not run the model.
    fn input(&self) -> u64;

    /// Returns the number of requested choices.
    fn choices(&self) -> u64 {
        1
    }

    /// Returns the output tokens of each choice that the request sets, if it sets them.
    fn requested_output(&self) -> Option<u64> {
        None
    }

    /// Returns the answer as JSON, if the request asks for a structured one.
    fn structured(&self) -> Option<&str> {
        None
    }

    /// Returns the output tokens of each choice, if the model would generate `desired`.
    fn output(&self, desired: u64) -> u64;

    /// Returns the cacheable prefixes of the prompt, each a prefix of the next.
    fn prefixes(&self) -> &[Prefix] {
        &[]
    }

    /// Returns the charges of the request, which will use `usage`.
    fn request_charge(&self, usage: &SimulatedUsage, charge: ChargeRule) -> RequestCharge;

    /// Returns the content type and body of the response.
    fn write(&self, generated: &Generated<'_>) -> (&'static str, ReplyBody);
}

/// The generated response; a text is meaningless, unless it is structured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Generated<'a> {
    /// The id of the response, 32 hexadecimal digits.
    pub(super) id: &'a str,
    /// The time of the response since the Unix epoch.
    pub(super) at: Duration,
    /// The output tokens of each choice.
    pub(super) output: u64,
    /// The text of each choice.
    pub(super) text: &'a str,
    /// True if the maximum output tokens truncated the response.
    pub(super) truncated: bool,
    pub(super) usage: SimulatedUsage,
}

/// Returns a path without its query and trailing slash.
pub(super) fn path_only(path: &str) -> &str {
    let path_only = path.split_once('?').map_or(path, |(path_only, _)| path_only);
    path_only.trim_end_matches('/')
}

/// Parses `metadata.output_tokens`: a number, or a string, as in OpenAI's metadata.
pub(super) fn requested_output(body: &Value) -> Result<Option<u64>, &'static str> {
    match &body["metadata"]["output_tokens"] {
        Value::Null => Ok(None),
        Value::String(text) => text.parse().map(Some).map_err(|_| REQUESTED_OUTPUT),
        value => value.as_u64().map(Some).ok_or(REQUESTED_OUTPUT),
    }
}

/// The maximum output of any response: the largest of the models of 2026.
pub(super) const MAX_OUTPUT_TOKENS: u64 = 128_000;

const REQUESTED_OUTPUT: &str = "metadata.output_tokens";
