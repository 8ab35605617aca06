//! Gemini's API: `generateContent`, streamed or not, embeddings, and the token count.

mod error;
mod pacific_day;
mod request;
mod responder;
mod target;

use std::time::Duration;

use serde_json::{Value, json};

use self::pacific_day::PacificDay;
use self::request::Request;
use self::responder::Responder;
use self::target::{Method, Target};
use super::api_error::ApiError;
use super::exceeded_limit::{ExceededLimit, LimitKind};
use super::fault::FaultKind;
use super::format::{Format, Generated, MAX_OUTPUT_TOKENS, ParsedRequest};
use super::limit_status::LimitStatus;
use super::limit_terms::LimitTerms;
use super::meter::Meter;
use super::models;
use super::reply::{Headers, ReplyBody};
use super::request_charge::{LimitCharge, RequestCharge};
use super::settings::{ChargeRule, Settings};
use super::tool_call::ToolCall;
use super::usage::SimulatedUsage;

/// Gemini's format. Its token limit counts input only, its days are Pacific time, and its responses
/// have no rate-limit headers.
#[derive(Debug)]
pub(super) struct Gemini;

impl Gemini {
    /// Returns whether a path without query belongs to this API, at Google or Vertex.
    pub(super) fn matches_path(path: &str) -> bool {
        path.starts_with("/v1beta/") || Target::of(path).is_some()
    }
}

impl Format for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn kinds(&self) -> &'static [LimitKind] {
        &[LimitKind::RequestsPerMinute, LimitKind::TokensPerMinute, LimitKind::RequestsPerDay]
    }

    fn meter(&self, kind: LimitKind, terms: LimitTerms, settings: &Settings) -> Box<dyn Meter> {
        match kind {
            LimitKind::RequestsPerDay => Box::new(PacificDay::new(terms.amount)),
            _ => terms.meter(settings.algorithm),
        }
    }

    fn read(&self, path: &str, body: &[u8]) -> Result<Box<dyn ParsedRequest>, ApiError> {
        Ok(Box::new(Request::parse(path, body)?))
    }

    fn models(&self, path: &str) -> Option<Value> {
        models::gemini(path)
    }

    fn limits(&self, _limits: &[LimitStatus], _now: u64) -> Headers {
        Headers::new()
    }

    fn identity(&self, _id: &str) -> Headers {
        Headers::new()
    }

    fn retry_headers(&self, _delay: Duration) -> Headers {
        Headers::new()
    }

    fn refusal(&self, refusal: &ExceededLimit, delay: Option<Duration>) -> ApiError {
        error::refusal(refusal, delay)
    }

    fn too_large(&self, limit: &ExceededLimit) -> ApiError {
        error::too_large(limit)
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

    /// Errors of streams that are JSON arrays are arrays, too.
    fn error(&self, path: &str, api_error: &ApiError, _id: &str) -> Value {
        let ApiError { status, message, kind, details, .. } = api_error;
        let mut error = json!({"code": status, "message": message, "status": kind});
        if !details.is_empty() {
            error["details"] = json!(details);
        }
        let error = json!({"error": error});
        if target::is_array(path) { json!([error]) } else { error }
    }
}

impl ParsedRequest for Request {
    fn model(&self) -> &str {
        &self.model
    }

    fn input(&self) -> u64 {
        if self.method == Method::CountTokens { 0 } else { self.tokens }
    }

    fn choices(&self) -> u64 {
        self.candidates
    }

    fn requested_output(&self) -> Option<u64> {
        self.requested_output.or_else(|| self.forced_call.as_ref().map(ToolCall::tokens))
    }

    fn structured(&self) -> Option<&str> {
        self.structured.as_deref().filter(|_| self.forced_call.is_none())
    }

    fn output(&self, desired: u64) -> u64 {
        match self.method {
            Method::Generate | Method::Stream => {
                desired.min(self.max_output).min(MAX_OUTPUT_TOKENS)
            }
            _ => 0,
        }
    }

    fn request_charge(&self, usage: &SimulatedUsage, _charge: ChargeRule) -> RequestCharge {
        if self.method == Method::CountTokens {
            return RequestCharge::default();
        }
        let tokens = LimitCharge::on_arrival(usage.input);
        RequestCharge { requests: LimitCharge::on_arrival(1), tokens, ..RequestCharge::default() }
    }

    fn write(&self, generated: &Generated<'_>) -> (&'static str, ReplyBody) {
        let responder = Responder { request: self, candidates: self.candidates, generated };
        match (self.method, self.array) {
            (Method::Stream, true) => (JSON, ReplyBody::Stream(responder.elements())),
            (Method::Stream, false) => ("text/event-stream", ReplyBody::Stream(responder.frames())),
            _ => (JSON, ReplyBody::Json(responder.json().to_string().into())),
        }
    }
}

const JSON: &str = "application/json; charset=UTF-8";
