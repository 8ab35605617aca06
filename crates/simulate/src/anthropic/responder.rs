//! JSON responses in Anthropic's format.

use serde_json::{Value, json};

use super::request::Request;
use crate::format::Generated;
use crate::tool_call::ToolCall;
use crate::usage::SimulatedUsage;

/// A writer of the response to a request.
#[derive(Debug)]
pub(super) struct Responder<'a> {
    pub(super) request: &'a Request,
    pub(super) generated: &'a Generated<'a>,
}

impl Responder<'_> {
    /// Returns the body of a response that is not streamed.
    pub(super) fn json(&self) -> Value {
        if self.request.is_token_count {
            return json!({"input_tokens": self.request.prompt.tokens});
        }
        let mut message = self.message(self.generated.usage.output);
        message["content"] = json!([match self.tool() {
            Some(tool) => self.tool_use(tool, &tool.arguments),
            None => json!({"type": "text", "text": self.generated.text}),
        }]);
        message["stop_reason"] = json!(self.stop_reason());
        message
    }

    /// Returns the message without content, after `output` tokens.
    pub(super) fn message(&self, output: u64) -> Value {
        json!({
            "id": format!("msg_{}", self.generated.id),
            "type": "message",
            "role": "assistant",
            "model": self.request.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": self.usage(output),
        })
    }

    pub(super) fn stop_reason(&self) -> &'static str {
        match self.tool() {
            Some(_) => "tool_use",
            None if self.generated.truncated => "max_tokens",
            None => "end_turn",
        }
    }

    /// Returns the tool call that replaces the text, if any.
    pub(super) fn tool(&self) -> Option<&ToolCall> {
        self.request.forced_call.as_ref().filter(|_| !self.generated.truncated)
    }

    /// Returns the content block of a tool call.
    pub(super) fn tool_use(&self, tool: &ToolCall, input: &Value) -> Value {
        let id = format!("toolu_{}", self.generated.id);
        json!({"type": "tool_use", "id": id, "name": tool.name, "input": input})
    }

    /// Returns `usage`, whose `input_tokens` exclude cached tokens.
    fn usage(&self, output: u64) -> Value {
        let SimulatedUsage { input, cache_read, cache_write, .. } = self.generated.usage;
        json!({
            "input_tokens": input.saturating_sub(cache_read).saturating_sub(cache_write),
            "cache_creation_input_tokens": cache_write,
            "cache_read_input_tokens": cache_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": cache_write,
                "ephemeral_1h_input_tokens": 0,
            },
            "output_tokens": output,
            "service_tier": "standard",
        })
    }

    /// Returns the `usage` at the end of a stream, which is cumulative.
    pub(super) fn last_usage(&self) -> Value {
        let mut usage = self.usage(self.generated.usage.output);
        if let Some(usage) = usage.as_object_mut() {
            usage.remove("cache_creation");
            usage.remove("service_tier");
        }
        usage
    }
}
