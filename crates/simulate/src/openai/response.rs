//! The `response` object.

use serde_json::{Value, json};

use super::answer::Answer;
use crate::text::text;

impl Answer<'_> {
    /// The `response` object, ended or as a stream begins with it.
    pub(super) fn response(&self, ended: bool) -> Value {
        let status = match (ended, self.made.cut) {
            (false, _) => "in_progress",
            (true, true) => "incomplete",
            (true, false) => "completed",
        };
        let reason = (ended && self.made.cut).then(|| json!({"reason": "max_output_tokens"}));
        json!({
            "id": self.named("resp_"),
            "object": "response",
            "created_at": self.created(),
            "status": status,
            "background": false,
            "completed_at": (status == "completed").then(|| self.created()),
            "error": null,
            "incomplete_details": reason,
            "max_output_tokens": self.call.max_output,
            "model": self.call.model,
            "output": if ended { vec![self.item(status)] } else { vec![] },
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "reasoning": {"effort": null, "summary": null},
            "service_tier": "default",
            "store": true,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}, "verbosity": "medium"},
            "tool_choice": self.call.tool_choice,
            "tools": self.call.tools,
            "top_p": 1.0,
            "truncation": "disabled",
            "metadata": {},
            "usage": ended.then(|| self.usage()),
        })
    }

    /// The one output item of a `response`.
    fn item(&self, status: &str) -> Value {
        match self.tool() {
            Some(tool) => self.function_call(tool, &tool.arguments.to_string(), status),
            None => self.message(&text(self.made.output), status),
        }
    }

    /// That item where it is a text.
    pub(super) fn message(&self, text: &str, status: &str) -> Value {
        let parts = if status == "in_progress" { vec![] } else { vec![part(text)] };
        json!({
            "id": self.named("msg_"),
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": parts,
        })
    }
}

/// A part of a message of a `response`.
pub(super) fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}
