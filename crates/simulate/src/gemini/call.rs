//! A request, read.

use serde_json::Value;

use super::answer::Answer;
use super::invalid;
use super::target::{Method, Target, is_array};
use crate::bill::{Bill, Claim};
use crate::format::{Call, Format, LONGEST_OUTPUT, Made, asked_output, plain};
use crate::pieces::pieces;
use crate::rejection::Rejection;
use crate::reply::ReplyBody;
use crate::settings::Charge;
use crate::tool::{ToolCall, elements};
use crate::usage::Usage;

/// What is asked for, and how.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) model: String,
    pub(super) method: Method,
    /// Tokens of the prompt, or of all texts to embed.
    pub(super) tokens: u64,
    /// Texts to embed.
    pub(super) inputs: usize,
    candidates: u64,
    max_output: u64,
    asked_output: Option<u64>,
    /// Whether a stream comes as one JSON array.
    array: bool,
    /// The call that `functionCallingConfig` forces.
    pub(super) forced: Option<ToolCall>,
}

impl Request {
    pub(super) fn parse(path: &str, body: &[u8]) -> Result<Self, Rejection> {
        let target = Target::of(plain(path));
        let target = target.ok_or_else(|| super::Gemini.unknown("POST", plain(path)))?;
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| invalid(format!("Invalid JSON payload received. {error}")))?;
        // A count may be asked for of a whole request.
        let asked = match &body["generateContentRequest"] {
            Value::Null => &body,
            asked => asked,
        };
        if !target.method.has_its_prompt(asked) {
            return Err(invalid("* GenerateContentRequest.contents: contents is not specified\n"));
        }
        let config = &asked["generationConfig"];
        Ok(Self {
            model: target.model.to_owned(),
            method: target.method,
            tokens: prompt(asked),
            inputs: asked["requests"].as_array().map_or(1, Vec::len),
            candidates: config["candidateCount"].as_u64().unwrap_or(1).clamp(1, MOST_CANDIDATES),
            max_output: config["maxOutputTokens"].as_u64().unwrap_or(LONGEST_OUTPUT),
            asked_output: asked_output(&body)
                .map_err(|name| invalid(format!("Invalid value at '{name}' (TYPE_INT64)")))?,
            array: is_array(path),
            forced: forced(asked),
        })
    }
}

impl Call for Request {
    fn model(&self) -> &str {
        &self.model
    }

    fn input(&self) -> u64 {
        if self.method == Method::CountTokens { 0 } else { self.tokens }
    }

    fn choices(&self) -> u64 {
        self.candidates
    }

    fn asked_output(&self) -> Option<u64> {
        self.asked_output.or_else(|| self.forced.as_ref().map(ToolCall::tokens))
    }

    fn output(&self, wanted: u64) -> u64 {
        match self.method {
            Method::Generate | Method::Stream => wanted.min(self.max_output).min(LONGEST_OUTPUT),
            _ => 0,
        }
    }

    fn bill(&self, usage: &Usage, _charge: Charge) -> Bill {
        if self.method == Method::CountTokens {
            return Bill::default();
        }
        let tokens = Claim::at_once(usage.input);
        Bill { requests: Claim::at_once(1), tokens, ..Bill::default() }
    }

    fn write(&self, made: &Made<'_>) -> (&'static str, ReplyBody) {
        let answer = Answer { call: self, candidates: self.candidates, made };
        match (self.method, self.array) {
            (Method::Stream, true) => (JSON, ReplyBody::Stream(answer.elements())),
            (Method::Stream, false) => ("text/event-stream", ReplyBody::Stream(answer.frames())),
            _ => (JSON, ReplyBody::Json(answer.json().to_string().into())),
        }
    }
}

impl Method {
    fn has_its_prompt(self, body: &Value) -> bool {
        match self {
            Self::Embed => body["content"].is_object(),
            Self::EmbedBatch => body["requests"].is_array(),
            _ => body["contents"].as_array().is_some_and(|contents| !contents.is_empty()),
        }
    }
}

/// The call of any function, or of one that is allowed.
fn forced(body: &Value) -> Option<ToolCall> {
    let config = &body["toolConfig"]["functionCallingConfig"];
    if config["mode"] != "ANY" {
        return None;
    }
    let allowed: Vec<&Value> = elements(&config["allowedFunctionNames"]).collect();
    let functions =
        elements(&body["tools"]).flat_map(|tool| elements(&tool["functionDeclarations"]));
    let tools = functions.map(|function| (&function["name"], schema(function)));
    ToolCall::first(tools, (!allowed.is_empty()).then_some(&allowed))
}

/// The schema of a function, recorded under three names.
fn schema(function: &Value) -> &Value {
    let names = ["parametersJsonSchema", "parameters_json_schema", "parameters"];
    names.iter().find_map(|name| function.get(name)).unwrap_or(&Value::Null)
}

/// Tokens of all that the model reads.
fn prompt(body: &Value) -> u64 {
    let contents = body["contents"].as_array().into_iter().flatten();
    let requests = body["requests"].as_array().into_iter().flatten();
    let texts = contents.chain([&body["content"], &body["systemInstruction"]]);
    let texts = texts.chain(requests.map(|request| &request["content"]));
    let tools = match &body["tools"] {
        Value::Null => 0,
        tools => pieces(&tools.to_string()),
    };
    texts.map(content).sum::<u64>() + tools
}

/// Tokens of the parts of a content: texts, media, and calls of functions as they are written.
fn content(content: &Value) -> u64 {
    let parts = content["parts"].as_array().into_iter().flatten();
    let tokens = parts.map(|part| match (&part["text"], part.get("inlineData")) {
        (Value::String(text), _) => pieces(text),
        (_, Some(_)) => MEDIA,
        _ if part.get("fileData").is_some() => MEDIA,
        _ => pieces(&part.to_string()),
    });
    tokens.sum()
}

const JSON: &str = "application/json; charset=UTF-8";

/// Gemini's bound of `candidateCount`.
const MOST_CANDIDATES: u64 = 8;

/// An image of one tile, as Google's guide to tokens says.
const MEDIA: u64 = 258;
