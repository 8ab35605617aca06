//! Requests in OpenAI's format.

use serde_json::Value;

use super::error::{empty_array, invalid, invalid_type, missing_parameter, not_found};
use super::prompt::Prompt;
use crate::api_error::ApiError;
use crate::format::{path_only, requested_output};
use crate::minimal_value::{elements, minimal_object, minimal_value};
use crate::tool_call::ToolCall;

/// A request in OpenAI's format.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) endpoint: Endpoint,
    pub(super) model: String,
    pub(super) prompt: Prompt,
    /// The number of texts to embed.
    pub(super) inputs: usize,
    /// The components of an embedding.
    pub(super) dimensions: u64,
    pub(super) choices: u64,
    /// The maximum output tokens of each choice.
    pub(super) max_output: Option<u64>,
    /// The output tokens of each choice, from `metadata.output_tokens`.
    pub(super) requested_output: Option<u64>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) base64: bool,
    /// The tools, which the response repeats.
    pub(super) tools: Vec<Value>,
    /// The tool choice, which the response repeats.
    pub(super) tool_choice: Value,
    /// The format of the answer, which the response repeats.
    pub(super) format: Value,
    /// The structured answer, as JSON.
    pub(super) structured: Option<String>,
    /// The tool call that `tool_choice` forces.
    pub(super) forced_call: Option<ToolCall>,
}

/// The endpoints of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Chat,
    Completions,
    Embeddings,
    Responses,
    /// Counts the input tokens of a Responses request.
    InputTokens,
}

impl Request {
    /// Parses a request to `path`, with or without `/v1`, or under Azure's paths: `/openai/v1`, or
    /// `/openai/deployments/NAME`, which names the model.
    pub(super) fn parse(path: &str, body: &[u8]) -> Result<Self, ApiError> {
        let (deployment, endpoint) = Endpoint::at(path)?;
        let body: Value = serde_json::from_slice(body).map_err(|_| invalid_json())?;
        let named = || body["model"].as_str().filter(|model| !model.is_empty());
        let model = deployment.or_else(named).ok_or_else(missing_model)?;
        let flag = |value: &Value| value.as_bool().unwrap_or(false);
        Ok(Self {
            endpoint,
            model: model.to_owned(),
            prompt: endpoint.prompt(&body)?,
            inputs: inputs(&body["input"]),
            dimensions: dimensions(&body, model)?,
            choices: choices(&body)?,
            max_output: endpoint.max_output(&body)?,
            requested_output: requested_output(&body)
                .map_err(|name| invalid_type(name, NON_NEGATIVE))?,
            stream: flag(&body["stream"]) && endpoint.supports_streaming(),
            include_usage: flag(&body["stream_options"]["include_usage"]),
            base64: body["encoding_format"] == "base64",
            tools: body["tools"].as_array().cloned().unwrap_or_default(),
            tool_choice: body.get("tool_choice").cloned().unwrap_or_else(|| "auto".into()),
            format: endpoint.answer_format(&body).clone(),
            structured: structured(endpoint.answer_format(&body)),
            forced_call: endpoint.supports_tools().then(|| forced_call(&body)).flatten(),
        })
    }
}

impl Endpoint {
    /// Returns the deployment in a path, if any, and the endpoint.
    fn at(path: &str) -> Result<(Option<&str>, Self), ApiError> {
        let path_only = path_only(path);
        let azure = path_only.strip_prefix("/openai");
        let deployment = azure.and_then(|rest| {
            let rest = rest.strip_prefix("/deployments/")?;
            Some(rest.split_at(rest.find('/')?))
        });
        let (deployment, rest) = match deployment {
            Some((name, rest)) => (Some(name), rest),
            None => {
                let rest = azure.unwrap_or(path_only);
                (None, rest.strip_prefix("/v1").unwrap_or(rest))
            }
        };
        let endpoint = match rest {
            "/chat/completions" => Self::Chat,
            "/completions" => Self::Completions,
            "/embeddings" => Self::Embeddings,
            "/responses" => Self::Responses,
            "/responses/input_tokens" => Self::InputTokens,
            _ => return Err(not_found("POST", path_only)),
        };
        Ok((deployment, endpoint))
    }

    /// Returns the format of the answer: `response_format` of a chat, `text.format` of a response.
    fn answer_format(self, body: &Value) -> &Value {
        match self {
            Self::Chat => &body["response_format"],
            Self::Responses => &body["text"]["format"],
            Self::Completions | Self::Embeddings | Self::InputTokens => &Value::Null,
        }
    }

    fn supports_streaming(self) -> bool {
        !matches!(self, Self::Embeddings | Self::InputTokens)
    }

    fn supports_tools(self) -> bool {
        matches!(self, Self::Chat | Self::Responses)
    }

    fn prompt(self, body: &Value) -> Result<Prompt, ApiError> {
        match self {
            Self::Chat => match &body["messages"] {
                Value::Array(messages) if messages.is_empty() => Err(empty_array("messages")),
                Value::Array(messages) => Ok(Prompt::from_chat(messages)),
                Value::Null => Err(missing_parameter("messages")),
                _ => Err(invalid_type("messages", "an array of objects")),
            },
            Self::Completions => Ok(Prompt::from_texts(&body["prompt"])),
            Self::Embeddings | Self::Responses | Self::InputTokens if body["input"].is_null() => {
                Err(missing_parameter("input"))
            }
            Self::Embeddings => Ok(Prompt::from_texts(&body["input"])),
            Self::Responses | Self::InputTokens => Ok(Prompt::from_responses(body)),
        }
    }

    fn max_output(self, body: &Value) -> Result<Option<u64>, ApiError> {
        match self {
            Self::Chat => {
                match parse_integer(&body["max_completion_tokens"], "max_completion_tokens")? {
                    None => parse_integer(&body["max_tokens"], "max_tokens"),
                    max => Ok(max),
                }
            }
            Self::Completions => parse_integer(&body["max_tokens"], "max_tokens"),
            Self::Embeddings | Self::InputTokens => Ok(None),
            Self::Responses => parse_integer(&body["max_output_tokens"], "max_output_tokens"),
        }
    }
}

fn invalid_json() -> ApiError {
    invalid(
        400,
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't \
         using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was \
         sent was not valid JSON.)",
    )
}

fn missing_model() -> ApiError {
    invalid(400, "you must provide a model parameter").with_param("model")
}

/// Returns the number of texts to embed: one, unless an array contains other values than token ids.
fn inputs(input: &Value) -> usize {
    match input {
        Value::Array(texts) if texts.first().is_some_and(|text| !text.is_number()) => texts.len(),
        _ => 1,
    }
}

fn choices(body: &Value) -> Result<u64, ApiError> {
    match parse_integer(&body["n"], "n")? {
        None => Ok(1),
        Some(n @ 1..=MAX_CHOICES) => Ok(n),
        Some(_) => Err(invalid_type("n", "an integer from 1 to 128")),
    }
}

fn parse_integer(value: &Value, name: &'static str) -> Result<Option<u64>, ApiError> {
    match value {
        Value::Null => Ok(None),
        value => value.as_u64().map(Some).ok_or_else(|| invalid_type(name, NON_NEGATIVE)),
    }
}

const NON_NEGATIVE: &str = "a non-negative integer";

/// OpenAI's maximum `n`.
const MAX_CHOICES: u64 = 128;

/// Returns the answer in a format: an empty object, or the smallest value of a schema.
fn structured(format: &Value) -> Option<String> {
    match format["type"].as_str()? {
        "json_object" => Some(minimal_object(&Value::Null).to_string()),
        // Chat completions nest the schema in an object; Responses don't.
        "json_schema" => {
            let format = format.get("json_schema").unwrap_or(format);
            Some(minimal_value(&format["schema"]).to_string())
        }
        _ => None,
    }
}

/// Returns the tool call that `tool_choice` forces: of any function, of a named one, or of one of
/// those allowed.
///
/// Chat completions nest the fields of a function in an object; Responses don't.
fn forced_call(body: &Value) -> Option<ToolCall> {
    let choice = &body["tool_choice"];
    let kind = choice.as_str().or_else(|| choice["type"].as_str())?;
    let among = choice.get("allowed_tools").unwrap_or(choice);
    let allowed = match kind {
        "required" => None,
        "function" => Some(vec![&function(choice)["name"]]),
        "allowed_tools" if among["mode"] == "required" => {
            Some(elements(&among["tools"]).map(|tool| &function(tool)["name"]).collect())
        }
        _ => return None,
    };
    let functions = elements(&body["tools"]).filter(|tool| tool["type"] == "function");
    let tools = functions.map(function).map(|tool| (&tool["name"], &tool["parameters"]));
    ToolCall::first(tools, allowed.as_deref())
}

fn function(tool: &Value) -> &Value {
    tool.get("function").unwrap_or(tool)
}

/// Returns the components of an embedding: those that the request sets, else those of the model
/// (developers.openai.com/api/docs/guides/embeddings).
fn dimensions(body: &Value, model: &str) -> Result<u64, ApiError> {
    match &body["dimensions"] {
        Value::Null if model.contains("3-large") => Ok(3_072),
        Value::Null => Ok(1_536),
        dimensions => {
            let dimensions = dimensions.as_u64().filter(|dimensions| *dimensions > 0);
            dimensions.ok_or_else(|| invalid_type("dimensions", "a positive integer"))
        }
    }
}
