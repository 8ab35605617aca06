//! Requests in Anthropic's format.

use serde_json::Value;

use super::error::{invalid, not_found};
use super::prompt::Prompt;
use crate::api_error::ApiError;
use crate::format::{path_only, requested_output};
use crate::minimal_value::{elements, minimal_value};
use crate::tool_call::ToolCall;

/// A request in Anthropic's format.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) model: String,
    pub(super) prompt: Prompt,
    /// True if the request only counts the tokens of the prompt.
    pub(super) is_token_count: bool,
    pub(super) max_output: u64,
    pub(super) requested_output: Option<u64>,
    pub(super) stream: bool,
    /// The structured answer, as JSON.
    pub(super) structured: Option<String>,
    /// The tool call that `tool_choice` forces.
    pub(super) forced_call: Option<ToolCall>,
}

impl Request {
    pub(super) fn parse(path: &str, body: &[u8]) -> Result<Self, ApiError> {
        let path = path_only(path);
        let is_token_count = path.ends_with("/count_tokens");
        if !is_token_count && !path.ends_with("/messages") {
            return Err(not_found());
        }
        let body: Value = serde_json::from_slice(body)
            .map_err(|_| invalid("The request body is not valid JSON"))?;
        let model = body["model"].as_str().filter(|model| !model.is_empty());
        let messages = body["messages"].as_array().ok_or_else(|| required("messages"))?;
        if messages.is_empty() {
            return Err(invalid("messages: at least one message is required"));
        }
        let max_output = match body["max_tokens"].as_u64() {
            Some(0) => Err(invalid("max_tokens: Input should be greater than or equal to 1")),
            Some(max) => Ok(max),
            None if is_token_count => Ok(0),
            None => Err(required("max_tokens")),
        };
        Ok(Self {
            model: model.ok_or_else(|| required("model"))?.to_owned(),
            prompt: Prompt::of(&body, messages),
            is_token_count,
            max_output: max_output?,
            requested_output: requested_output(&body)
                .map_err(|name| invalid(format!("{name}: {NON_NEGATIVE}")))?,
            stream: body["stream"].as_bool().unwrap_or(false) && !is_token_count,
            structured: structured(&body),
            forced_call: forced_call(&body),
        })
    }
}

/// Returns the answer of the schema in `output_config.format`, which was `output_format` in the beta.
fn structured(body: &Value) -> Option<String> {
    let format = body["output_config"].get("format").unwrap_or(&body["output_format"]);
    (format["type"] == "json_schema").then(|| minimal_value(&format["schema"]).to_string())
}

/// Returns the forced call of any tool, or of a named one.
fn forced_call(body: &Value) -> Option<ToolCall> {
    let choice = &body["tool_choice"];
    let allowed = match choice["type"].as_str()? {
        "any" => None,
        "tool" => Some([&choice["name"]]),
        _ => return None,
    };
    // Tools that Anthropic runs on its servers have no schema.
    let tools = elements(&body["tools"]).filter(|tool| tool["input_schema"].is_object());
    let tools = tools.map(|tool| (&tool["name"], &tool["input_schema"]));
    ToolCall::first(tools, allowed.as_ref().map(<[_; 1]>::as_slice))
}

fn required(name: &str) -> ApiError {
    invalid(format!("{name}: Field required"))
}

const NON_NEGATIVE: &str = "Input should be a valid integer";
