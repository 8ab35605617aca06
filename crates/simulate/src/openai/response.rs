//! JSON responses in OpenAI's format.

use serde_json::{Value, json};

use super::charge::input_tokens;
use super::request::Endpoint;
use super::responder::{FINGERPRINT, Responder};
use crate::embedding;

impl Responder<'_> {
    /// Returns the body of a response that is not streamed.
    pub(super) fn json(&self) -> Value {
        match self.request.endpoint {
            Endpoint::Chat => self.chat(),
            Endpoint::Completions => self.completion(),
            Endpoint::Embeddings => self.embeddings(),
            Endpoint::Responses => self.response(true),
            Endpoint::InputTokens => {
                json!({"object": "response.input_tokens", "input_tokens": input_tokens(self.request)})
            }
        }
    }

    fn chat(&self) -> Value {
        let choice = |index| {
            json!({
                "index": index,
                "message": self.chat_message(index),
                "logprobs": null,
                "finish_reason": self.finish_reason(),
            })
        };
        json!({
            "id": self.prefixed_id("chatcmpl-"),
            "object": "chat.completion",
            "created": self.created(),
            "model": self.request.model,
            "choices": (0..self.request.choices).map(choice).collect::<Vec<_>>(),
            "usage": self.usage(),
            "service_tier": "default",
            "system_fingerprint": FINGERPRINT,
        })
    }

    fn chat_message(&self, index: u64) -> Value {
        let mut message = json!({"role": "assistant", "refusal": null, "annotations": []});
        match self.tool() {
            Some(tool) => {
                message["content"] = Value::Null;
                message["tool_calls"] = json!([self.chat_call(tool, index)]);
            }
            None => message["content"] = json!(self.generated.text),
        }
        message
    }

    fn completion(&self) -> Value {
        let choice = |index| {
            json!({
                "text": self.generated.text,
                "index": index,
                "logprobs": null,
                "finish_reason": self.finish_reason(),
            })
        };
        json!({
            "id": self.prefixed_id("cmpl-"),
            "object": "text_completion",
            "created": self.created(),
            "model": self.request.model,
            "choices": (0..self.request.choices).map(choice).collect::<Vec<_>>(),
            "usage": self.usage(),
        })
    }

    fn embeddings(&self) -> Value {
        let vector = embedding::vector(self.request.dimensions);
        let vector = match self.request.base64 {
            true => json!(embedding::base64(&vector)),
            false => json!(vector),
        };
        let embedding = |index| json!({"object": "embedding", "index": index, "embedding": vector});
        json!({
            "object": "list",
            "data": (0..self.request.inputs).map(embedding).collect::<Vec<_>>(),
            "model": self.request.model,
            "usage": self.usage(),
        })
    }

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
