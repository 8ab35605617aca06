//! An answer as one JSON object, in OpenAI's shapes.

use serde_json::{Value, json};

use super::call::{Call, Endpoint};
use super::reply::{ReplyBody, Usage};

/// An answer of a known size; its text means nothing.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) call: &'a Call,
    /// 32 hexadecimal digits.
    pub(super) id: &'a str,
    /// Seconds since the epoch.
    pub(super) created: u64,
    /// Tokens of each choice.
    pub(super) output: u64,
    /// Whether the most output tokens cut it short.
    pub(super) cut: bool,
    pub(super) usage: Usage,
}

impl Answer<'_> {
    /// The body, in the form that was asked for.
    pub(super) fn body(&self) -> ReplyBody {
        match self.call.stream {
            true => ReplyBody::Stream(self.frames()),
            false => ReplyBody::Json(self.json().to_string().into()),
        }
    }

    fn json(&self) -> Value {
        match self.call.endpoint {
            Endpoint::Chat => self.chat(),
            Endpoint::Completions => self.completion(),
            Endpoint::Embeddings => self.embeddings(),
            Endpoint::Responses => self.response(true),
        }
    }

    fn chat(&self) -> Value {
        let choice = |index| {
            json!({
                "index": index,
                "message": {
                    "role": "assistant",
                    "content": text(self.output),
                    "refusal": null,
                    "annotations": [],
                },
                "logprobs": null,
                "finish_reason": self.finish_reason(),
            })
        };
        json!({
            "id": self.named("chatcmpl-"),
            "object": "chat.completion",
            "created": self.created,
            "model": self.call.model,
            "choices": (0..self.call.choices).map(choice).collect::<Vec<_>>(),
            "usage": self.usage(),
            "service_tier": "default",
            "system_fingerprint": FINGERPRINT,
        })
    }

    fn completion(&self) -> Value {
        let choice = |index| {
            json!({
                "text": text(self.output),
                "index": index,
                "logprobs": null,
                "finish_reason": self.finish_reason(),
            })
        };
        json!({
            "id": self.named("cmpl-"),
            "object": "text_completion",
            "created": self.created,
            "model": self.call.model,
            "choices": (0..self.call.choices).map(choice).collect::<Vec<_>>(),
            "usage": self.usage(),
        })
    }

    fn embeddings(&self) -> Value {
        let vector = if self.call.base64 { json!(VECTOR_BASE64) } else { json!(VECTOR) };
        let embedding = |index| json!({"object": "embedding", "index": index, "embedding": vector});
        json!({
            "object": "list",
            "data": (0..self.call.inputs).map(embedding).collect::<Vec<_>>(),
            "model": self.call.model,
            "usage": self.usage(),
        })
    }

    /// The `response` object, ended or as a stream begins with it.
    pub(super) fn response(&self, ended: bool) -> Value {
        let status = match (ended, self.cut) {
            (false, _) => "in_progress",
            (true, true) => "incomplete",
            (true, false) => "completed",
        };
        let reason = (ended && self.cut).then(|| json!({"reason": "max_output_tokens"}));
        json!({
            "id": self.named("resp_"),
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": null,
            "incomplete_details": reason,
            "max_output_tokens": self.call.max_output,
            "model": self.call.model,
            "output": if ended { vec![self.message(&text(self.output), status)] } else { vec![] },
            "parallel_tool_calls": true,
            "service_tier": "default",
            "usage": ended.then(|| self.usage()),
        })
    }

    /// The one output item of a `response`.
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

    /// `usage`, in the words of the endpoint.
    pub(super) fn usage(&self) -> Value {
        let Usage { input, output } = self.usage;
        let total = input + output;
        match self.call.endpoint {
            Endpoint::Embeddings => json!({"prompt_tokens": input, "total_tokens": total}),
            Endpoint::Responses => json!({
                "input_tokens": input,
                "input_tokens_details": {"cached_tokens": 0},
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
        if self.cut { "length" } else { "stop" }
    }

    /// The id, after what it is the id of.
    pub(super) fn named(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.id)
    }
}

/// A part of a message of a `response`.
pub(super) fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// A text of so many tokens, at [`TOKEN`] characters each.
pub(super) fn text(tokens: u64) -> String {
    let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
    WORDS.iter().cycle().take(tokens).copied().collect()
}

/// What the model is said to run on.
pub(super) const FINGERPRINT: &str = "fp_tollgate";

/// Characters of a token.
pub(super) const TOKEN: usize = 4;

const WORDS: [&str; 7] = ["the ", "fox ", "may ", "not ", "eat ", "any ", "hen "];

/// A short vector of length 1, and the same as little-endian `f32` in Base64.
const VECTOR: [f32; 4] = [0.5; 4];
const VECTOR_BASE64: &str = "AAAAPwAAAD8AAAA/AAAAPw==";
