//! The `response` object.

use serde_json::{Value, json};

use super::responder::Responder;

impl Responder<'_> {
    /// Returns the `response` object, complete or as at the start of a stream.
    pub(super) fn response(&self, ended: bool) -> Value {
        let status = match (ended, self.generated.truncated) {
            (false, _) => "in_progress",
            (true, true) => "incomplete",
            (true, false) => "completed",
        };
        let reason =
            (ended && self.generated.truncated).then(|| json!({"reason": "max_output_tokens"}));
        json!({
            "id": self.prefixed_id("resp_"),
            "object": "response",
            "created_at": self.created(),
            "status": status,
            "background": false,
            "completed_at": (status == "completed").then(|| self.created()),
            "error": null,
            "incomplete_details": reason,
            "max_output_tokens": self.request.max_output,
            "model": self.request.model,
            "output": if ended { vec![self.item(status)] } else { vec![] },
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "reasoning": {"effort": null, "summary": null},
            "service_tier": "default",
            "store": true,
            "temperature": 1.0,
            "text": {"format": self.format(), "verbosity": "medium"},
            "tool_choice": self.request.tool_choice,
            "tools": self.request.tools,
            "top_p": 1.0,
            "truncation": "disabled",
            "metadata": {},
            "usage": ended.then(|| self.usage()),
        })
    }

    /// Returns the format of the answer.
    fn format(&self) -> Value {
        match &self.request.format {
            Value::Null => json!({"type": "text"}),
            format => format.clone(),
        }
    }

    /// Returns the output item of a `response`.
    fn item(&self, status: &str) -> Value {
        match self.tool() {
            Some(tool) => self.function_call(tool, &tool.arguments.to_string(), status),
            None => self.message(self.generated.text, status),
        }
    }

    /// Returns the output item of a text.
    pub(super) fn message(&self, text: &str, status: &str) -> Value {
        let parts = if status == "in_progress" { vec![] } else { vec![part(text)] };
        json!({
            "id": self.prefixed_id("msg_"),
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": parts,
        })
    }
}

/// Returns a text part of a message.
pub(super) fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}
