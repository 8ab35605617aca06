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
use self::responder::Responder;
use super::api_error::ApiError;
use super::cache::Prefix;
use super::exceeded_limit::{ExceededLimit, LimitKind};
use super::fault::FaultKind;
use super::format::{Format, Generated, MAX_OUTPUT_TOKENS, ParsedRequest};
use super::limit_status::LimitStatus;
use super::models;
use super::reply::{Headers, ReplyBody};
use super::request_charge::{LimitCharge, RequestCharge};
use super::settings::ChargeRule;
use super::tool_call::ToolCall;
use super::usage::SimulatedUsage;

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

impl ParsedRequest for Request {
    fn model(&self) -> &str {
        &self.model
    }

    fn input(&self) -> u64 {
        if self.is_token_count { 0 } else { self.prompt.tokens }
    }

    fn requested_output(&self) -> Option<u64> {
        self.requested_output.or_else(|| self.forced_call.as_ref().map(ToolCall::tokens))
    }

    fn structured(&self) -> Option<&str> {
        self.structured.as_deref().filter(|_| self.forced_call.is_none())
    }

    fn output(&self, desired: u64) -> u64 {
        desired.min(self.max_output).min(MAX_OUTPUT_TOKENS)
    }

    fn prefixes(&self) -> &[Prefix] {
        if self.is_token_count { &[] } else { &self.prompt.prefixes }
    }

    fn request_charge(&self, usage: &SimulatedUsage, _charge: ChargeRule) -> RequestCharge {
        if self.is_token_count {
            return RequestCharge::default();
        }
        let required = self.prompt.estimate().saturating_sub(usage.cache_read).max(1);
        let taken = usage.input.saturating_sub(usage.cache_read);
        RequestCharge {
            requests: LimitCharge::on_arrival(1),
            tokens: LimitCharge { required, taken, generated: usage.output },
            input: LimitCharge { required, taken, generated: 0 },
            output: LimitCharge { required: 1, taken: 0, generated: usage.output },
            ..RequestCharge::default()
        }
    }

    fn write(&self, generated: &Generated<'_>) -> (&'static str, ReplyBody) {
        let responder = Responder { request: self, generated };
        match self.stream {
            true => ("text/event-stream; charset=utf-8", ReplyBody::Stream(responder.frames())),
            false => ("application/json", ReplyBody::Json(responder.json().to_string().into())),
        }
    }
}
