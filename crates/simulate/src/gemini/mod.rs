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
use self::target::Target;
use super::api_error::ApiError;
use super::exceeded_limit::{ExceededLimit, LimitKind};
use super::fault::FaultKind;
use super::format::{Format, ParsedRequest};
use super::limit_status::LimitStatus;
use super::limit_terms::LimitTerms;
use super::meter::Meter;
use super::models;
use super::reply::Headers;
use super::settings::Settings;

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
