//! Requests in Anthropic's format.

use serde_json::Value;

use super::error::{invalid, not_found};
use super::prompt::Prompt;
use super::responder::Responder;
use crate::api_error::ApiError;
use crate::cache::Prefix;
use crate::format::{Generated, MAX_OUTPUT_TOKENS, ParsedRequest, path_only, requested_output};
use crate::minimal_value::{elements, minimal_value};
use crate::reply::ReplyBody;
use crate::request_charge::{LimitCharge, RequestCharge};
use crate::settings::ChargeRule;
use crate::tool_call::ToolCall;
use crate::usage::SimulatedUsage;

/// A request in Anthropic's format.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) model: String,
    pub(super) prompt: Prompt,
    /// True if the request only counts the tokens of the prompt.
    pub(super) is_token_count: bool,
    max_output: u64,
    requested_output: Option<u64>,
    stream: bool,
    /// The structured answer, as JSON.
    structured: Option<String>,
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
