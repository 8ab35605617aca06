//! What sets one provider's API apart: how a request is read, and how all that is said is written.
//!
//! The limits are kept elsewhere, in the same way for all; a format says which there are and what
//! a request takes of them.

use std::fmt::Debug;
use std::time::Duration;

use serde_json::Value;

use super::anthropic::Anthropic;
use super::api_error::ApiError;
use super::cache::Prefix;
use super::fault::Failure;
use super::gemini::Gemini;
use super::meter::{Meter, meter};
use super::model_limits::ModelLimits;
use super::openai::OpenAi;
use super::refusal::{LimitKind, Refusal};
use super::reply::{Headers, ReplyBody};
use super::request_charge::RequestCharge;
use super::settings::{ChargeRule, Settings};
use crate::usage::SimulatedUsage;

/// One provider's API.
pub(super) trait Format: Debug + Sync {
    /// Sets its accounts apart from those of others.
    fn name(&self) -> &'static str;

    /// The limits that it knows.
    fn kinds(&self) -> &'static [LimitKind];

    /// A fresh meter of one of them.
    fn meter(&self, kind: LimitKind, amount: u64, settings: &Settings) -> Box<dyn Meter> {
        meter(settings.algorithm, amount, kind.window_ns(), settings.capacity(kind, amount))
    }

    /// Reads a POST of `body` to `path`, which has its query.
    fn read(&self, path: &str, body: &[u8]) -> Result<Box<dyn ParsedRequest>, ApiError>;

    /// What the head of each answer says of the limits.
    fn limits(&self, limits: &mut ModelLimits, now: u64) -> Headers;

    /// The head of every answer, errors too: whose it is, and its `id` of 32 digits.
    fn identity(&self, id: &str) -> Headers;

    /// How it says that a limit has no room.
    fn refusal(&self, refusal: &Refusal) -> ApiError;

    /// How it says that something else is wrong.
    fn failure(&self, failure: Failure) -> ApiError;

    /// That nothing answers to this method and path.
    fn not_found(&self, method: &str, path: &str) -> ApiError;

    /// The body of an error that answers a request to `path`.
    fn error(&self, path: &str, api_error: &ApiError, id: &str) -> Value;
}

/// A request, read.
pub(super) trait ParsedRequest: Debug {
    /// The model that is asked for.
    fn model(&self) -> &str;

    /// Tokens of the prompt, cached ones included, as the usage of the answer states them; 0 where
    /// nothing is asked of the model.
    fn input(&self) -> u64;

    /// How many answers are wanted.
    fn choices(&self) -> u64 {
        1
    }

    /// The output tokens of each that the request itself tells.
    fn requested_output(&self) -> Option<u64> {
        None
    }

    /// Tokens of each, if `desired` is how long the model would go on.
    fn output(&self, desired: u64) -> u64;

    /// The parts of the prompt that are to be cached, each the beginning of the next.
    fn prefixes(&self) -> &[Prefix] {
        &[]
    }

    /// What it takes from the limits, if `usage` is what it will use.
    fn request_charge(&self, usage: &SimulatedUsage, charge: ChargeRule) -> RequestCharge;

    /// The content type and the body of the answer.
    fn write(&self, generated: &Generated<'_>) -> (&'static str, ReplyBody);
}

/// What was made for a request; its text means nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Generated<'a> {
    /// 32 hexadecimal digits.
    pub(super) id: &'a str,
    /// Since the Unix epoch.
    pub(super) at: Duration,
    /// Tokens of each choice.
    pub(super) output: u64,
    /// Whether the most output tokens cut it short.
    pub(super) truncated: bool,
    pub(super) usage: SimulatedUsage,
}

/// Whose requests go to this path. What is nobody's is OpenAI's, whose API everybody else copies.
pub(super) fn for_path(path: &str) -> &'static dyn Format {
    let path_only = path_only(path);
    if Gemini::matches_path(path_only) {
        &Gemini
    } else if Anthropic::matches_path(path_only) {
        &Anthropic
    } else {
        &OpenAi
    }
}

/// A path without its query and the slash at its end.
pub(super) fn path_only(path: &str) -> &str {
    let path_only = path.split_once('?').map_or(path, |(path_only, _)| path_only);
    path_only.trim_end_matches('/')
}

/// The output tokens in `metadata.output_tokens`: a number, or a string as OpenAI's metadata has it.
pub(super) fn requested_output(body: &Value) -> Result<Option<u64>, &'static str> {
    match &body["metadata"]["output_tokens"] {
        Value::Null => Ok(None),
        Value::String(text) => text.parse().map(Some).map_err(|_| REQUESTED_OUTPUT),
        value => value.as_u64().map(Some).ok_or(REQUESTED_OUTPUT),
    }
}

/// No request makes the simulation write more: the largest output of the models of 2026.
pub(super) const MAX_OUTPUT_TOKENS: u64 = 128_000;

const REQUESTED_OUTPUT: &str = "metadata.output_tokens";
