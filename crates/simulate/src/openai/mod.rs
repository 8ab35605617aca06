//! OpenAI's API: chat completions, completions, embeddings, Responses, and their token count.

mod charge;
mod error;
mod headers;
mod prompt;
mod request;
mod responder;
mod response;
mod stream;
mod tools;

use std::time::Duration;

use serde_json::{Value, json};

use self::charge::input_tokens;
use self::request::{Endpoint, Request};
use self::responder::Responder;
use super::api_error::ApiError;
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
            ("openai-organization", headers::ORGANIZATION.to_owned()),
            ("x-request-id", format!("req_{id}")),
        ]
    }

    fn retry_headers(&self, delay: Duration) -> Headers {
        headers::retry_headers(delay)
    }

    fn refusal(&self, refusal: &ExceededLimit, delay: Option<Duration>) -> ApiError {
        error::refusal(refusal, delay)
    }

    fn unnamed_refusal(&self) -> ApiError {
        error::unnamed_refusal()
    }

    fn failure(&self, kind: FaultKind) -> ApiError {
        error::failure(kind)
    }

    fn not_found(&self, method: &str, path: &str) -> ApiError {
        error::not_found(method, path)
    }

    fn unknown_model(&self, model: &str) -> ApiError {
        error::unknown_model(model)
    }

    fn error(&self, _path: &str, api_error: &ApiError, _id: &str) -> Value {
        let ApiError { message, kind, param, code, .. } = api_error;
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
    }
}

impl ParsedRequest for Request {
    fn model(&self) -> &str {
        &self.model
    }

    fn input(&self) -> u64 {
        if self.endpoint == Endpoint::InputTokens { 0 } else { input_tokens(self) }
    }

    fn choices(&self) -> u64 {
        self.choices
    }

    fn requested_output(&self) -> Option<u64> {
        self.requested_output.or_else(|| self.forced_call.as_ref().map(ToolCall::tokens))
    }

    fn structured(&self) -> Option<&str> {
        self.structured.as_deref().filter(|_| self.forced_call.is_none())
    }

    fn output(&self, desired: u64) -> u64 {
        match self.endpoint {
            Endpoint::Embeddings | Endpoint::InputTokens => 0,
            _ => desired.min(self.max_output.unwrap_or(u64::MAX)).min(MAX_OUTPUT_TOKENS),
        }
    }

    fn request_charge(&self, usage: &SimulatedUsage, charge: ChargeRule) -> RequestCharge {
        if self.endpoint == Endpoint::InputTokens {
            return RequestCharge::default();
        }
        let tokens = LimitCharge::on_arrival(charge.tokens(self, usage));
        RequestCharge { requests: LimitCharge::on_arrival(1), tokens, ..RequestCharge::default() }
    }

    fn write(&self, generated: &Generated<'_>) -> (&'static str, ReplyBody) {
        let responder = Responder { request: self, generated };
        match self.stream {
            true => (EVENTS, ReplyBody::Stream(responder.frames())),
            false => ("application/json", ReplyBody::Json(responder.json().to_string().into())),
        }
    }
}

const EVENTS: &str = "text/event-stream; charset=utf-8";
