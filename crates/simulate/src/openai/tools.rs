//! Tool calls in OpenAI's format.

use serde_json::{Value, json};

use super::responder::Responder;
use crate::tool_call::ToolCall;

/// The name and data of an event in a Responses stream.
pub(super) type Event = (&'static str, Value);

impl Responder<'_> {
    /// Returns an element of `tool_calls`.
    pub(super) fn chat_call(&self, tool: &ToolCall, choice: u64) -> Value {
        json!({
            "id": format!("{}{choice}", self.prefixed_id("call_")),
            "type": "function",
            "function": {"name": tool.name, "arguments": tool.arguments.to_string()},
        })
    }

    /// Returns the deltas of an element of `tool_calls`: all fields without arguments, then the arguments.
    pub(super) fn chat_call_deltas(&self, tool: &ToolCall, choice: u64) -> Vec<Value> {
        let mut first = self.chat_call(tool, choice);
        first["index"] = json!(0);
        first["function"]["arguments"] = json!("");
        let first =
            json!({"role": "assistant", "content": null, "tool_calls": [first], "refusal": null});
        let arguments = tool
            .deltas()
            .map(|part| json!({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}));
        [first].into_iter().chain(arguments).collect()
    }

    /// Returns an output item of a `response`.
    pub(super) fn function_call(&self, tool: &ToolCall, arguments: &str, status: &str) -> Value {
        json!({
            "id": self.prefixed_id("fc_"),
            "type": "function_call",
            "status": status,
            "arguments": arguments,
            "call_id": self.prefixed_id("call_"),
            "name": tool.name,
        })
    }

    /// Returns the events of a function call's output item.
    pub(super) fn function_call_events(&self, tool: &ToolCall) -> Vec<Event> {
        let id = self.prefixed_id("fc_");
        let whole = tool.arguments.to_string();
        let started = self.function_call(tool, "", "in_progress");
        let mut events = vec![("response.output_item.added", json!({"item": started}))];
        events.extend(tool.deltas().map(|part| {
            ("response.function_call_arguments.delta", json!({"item_id": id, "delta": part}))
        }));
        events.extend([
            (
                "response.function_call_arguments.done",
                json!({"item_id": id, "name": tool.name, "arguments": whole}),
            ),
            (
                "response.output_item.done",
                json!({"item": self.function_call(tool, &whole, "completed")}),
            ),
        ]);
        events
    }
}
