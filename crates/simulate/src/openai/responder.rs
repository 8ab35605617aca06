//! JSON responses in OpenAI's format.

use serde_json::{Value, json};

use super::charge::input_tokens;
use super::request::{Endpoint, Request};
use crate::embedding;
use crate::format::Generated;
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

    /// Returns `usage`, with the field names of the endpoint.
    pub(super) fn usage(&self) -> Value {
        let SimulatedUsage { input, output, .. } = self.generated.usage;
        let total = input + output;
        match self.request.endpoint {
            Endpoint::Embeddings => json!({"prompt_tokens": input, "total_tokens": total}),
            Endpoint::Responses | Endpoint::InputTokens => json!({
                "input_tokens": input,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": total,
            }),
            Endpoint::Chat | Endpoint::Completions => json!({
                "prompt_tokens": input,
                "completion_tokens": output,
                "total_tokens": total,
                "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
                "completion_tokens_details": {
                    "reasoning_tokens": 0,
                    "audio_tokens": 0,
                    "accepted_prediction_tokens": 0,
                    "rejected_prediction_tokens": 0,
                },
            }),
        }
    }

    pub(super) fn finish_reason(&self) -> &'static str {
        match self.tool() {
            Some(_) => "tool_calls",
            None if self.generated.truncated => "length",
            None => "stop",
        }
    }

    /// Returns the creation time in seconds since the Unix epoch.
    pub(super) fn created(&self) -> u64 {
        self.generated.at.as_secs()
    }

    /// Returns the id with a prefix.
    pub(super) fn prefixed_id(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.generated.id)
    }
}

/// The reported backend configuration.
pub(super) const FINGERPRINT: &str = "fp_paceline";
