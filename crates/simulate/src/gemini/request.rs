//! Requests in Gemini's format.

use serde_json::{Value, json};

use super::error::{invalid, not_found};
use super::target::{Method, Target, is_array};
use crate::api_error::ApiError;
use crate::format::{MAX_OUTPUT_TOKENS, path_only, requested_output};
use crate::minimal_value::{elements, minimal_value};
use crate::token_count::count_tokens;
use crate::tool_call::ToolCall;

/// A request in Gemini's format.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) model: String,
    pub(super) method: Method,
    /// Tokens of the prompt, or of all texts to embed.
    pub(super) tokens: u64,
    /// The components of the embedding of each text; one element for other methods.
    pub(super) dimensions: Vec<u64>,
    pub(super) candidates: u64,
    pub(super) max_output: u64,
    pub(super) requested_output: Option<u64>,
    /// True if the response is streamed as one JSON array.
    pub(super) array: bool,
    /// The structured answer, as JSON.
    pub(super) structured: Option<String>,
    /// The tool call that `functionCallingConfig` forces.
    pub(super) forced_call: Option<ToolCall>,
}

impl Request {
    pub(super) fn parse(path: &str, body: &[u8]) -> Result<Self, ApiError> {
        let target = Target::of(path_only(path));
        let target = target.ok_or_else(|| not_found("POST", path_only(path)))?;
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| invalid(format!("Invalid JSON payload received. {error}")))?;
        // `countTokens` also accepts a whole request in this field.
        let request = match &body["generateContentRequest"] {
            Value::Null => &body,
            request => request,
        };
        if !target.method.has_prompt(request) {
            return Err(invalid("* GenerateContentRequest.contents: contents is not specified\n"));
        }
        if let Some(index) = content_without_parts(request) {
            return Err(invalid(format!(
                "* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n"
            )));
        }
        let config = &request["generationConfig"];
        Ok(Self {
            model: target.model.to_owned(),
            method: target.method,
            tokens: prompt(request),
            dimensions: dimensions(request),
            candidates: config["candidateCount"].as_u64().unwrap_or(1).clamp(1, MAX_CANDIDATES),
            max_output: config["maxOutputTokens"].as_u64().unwrap_or(MAX_OUTPUT_TOKENS),
            requested_output: requested_output(&body)
                .map_err(|name| invalid(format!("Invalid value at '{name}' (TYPE_INT64)")))?,
            array: is_array(path),
            structured: structured(config),
            forced_call: forced_call(request),
        })
    }
}

/// Returns the index of the first content without parts, which Gemini refuses
/// (<https://github.com/langchain-ai/langchain-google/issues/691>, 2025-01).
fn content_without_parts(request: &Value) -> Option<usize> {
    let has_no_parts = |content: &Value| content["parts"].as_array().is_some_and(Vec::is_empty);
    request["contents"].as_array()?.iter().position(has_no_parts)
}

impl Method {
    fn has_prompt(self, body: &Value) -> bool {
        match self {
            Self::Embed => body["content"].is_object(),
            Self::EmbedBatch => body["requests"].is_array(),
            _ => body["contents"].as_array().is_some_and(|contents| !contents.is_empty()),
        }
    }
}

/// Returns the answer of the media type and the schema in `generationConfig`.
fn structured(config: &Value) -> Option<String> {
    let of_json = match config["responseMimeType"].as_str()? {
        "application/json" => true,
        "text/x.enum" => false,
        _ => return None,
    };
    let schemas = ["responseJsonSchema", "responseSchema"];
    let schema = schemas.iter().find_map(|name| config.get(name));
    let value = schema.map_or_else(|| json!({}), minimal_value);
    Some(if of_json { value.to_string() } else { value.as_str()?.to_owned() })
}

/// Returns the components of the embedding of each text: those that the request sets, else those of
/// `gemini-embedding-001` (ai.google.dev/gemini-api/docs/embeddings).
fn dimensions(request: &Value) -> Vec<u64> {
    let of = |one: &Value| {
        let set = one
            .get("outputDimensionality")
            .or_else(|| one["embedContentConfig"].get("outputDimensionality"));
        set.and_then(Value::as_u64).unwrap_or(3_072)
    };
    match request["requests"].as_array() {
        Some(requests) => requests.iter().map(of).collect(),
        None => vec![of(request)],
    }
}

/// Returns the forced call of any function, or of an allowed one.
fn forced_call(body: &Value) -> Option<ToolCall> {
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

/// Returns the schema of a function, which has three possible names in recordings.
fn schema(function: &Value) -> &Value {
    let names = ["parametersJsonSchema", "parameters_json_schema", "parameters"];
    names.iter().find_map(|name| function.get(name)).unwrap_or(&Value::Null)
}

/// Returns the tokens of the input.
fn prompt(body: &Value) -> u64 {
    let contents = body["contents"].as_array().into_iter().flatten();
    let requests = body["requests"].as_array().into_iter().flatten();
    let texts = contents.chain([&body["content"], &body["systemInstruction"]]);
    let texts = texts.chain(requests.map(|request| &request["content"]));
    let tools = match &body["tools"] {
        Value::Null => 0,
        tools => count_tokens(&tools.to_string()),
    };
    texts.map(content).sum::<u64>() + tools
}

/// Returns the tokens of a content: texts, media, and function calls as JSON.
fn content(content: &Value) -> u64 {
    let parts = content["parts"].as_array().into_iter().flatten();
    let tokens = parts.map(|part| match (&part["text"], part.get("inlineData")) {
        (Value::String(text), _) => count_tokens(text),
        (_, Some(_)) => MEDIA,
        _ if part.get("fileData").is_some() => MEDIA,
        _ => count_tokens(&part.to_string()),
    });
    tokens.sum()
}

/// Gemini's maximum `candidateCount`.
const MAX_CANDIDATES: u64 = 8;

/// An image of one tile, as in Google's token guide.
const MEDIA: u64 = 258;
