//! The parts that JSON and streamed responses in OpenAI's format share.

use serde_json::{Value, json};

use super::request::{Endpoint, Request};
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
    /// Returns the tool call that replaces the text, if any.
    pub(super) fn tool(&self) -> Option<&ToolCall> {
        self.request.forced_call.as_ref().filter(|_| !self.generated.truncated)
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
