//! An answer: one JSON object, server-sent events, or one JSON array.

use bytes::Bytes;
use serde_json::{Value, json};

use super::request::Request;
use super::target::Method;
use crate::format::Generated;
use crate::text::{VECTOR, deltas, text};
use crate::tool_call::ToolCall;

/// What was made, and for whom.
#[derive(Debug)]
pub(super) struct Responder<'a> {
    pub(super) request: &'a Request,
    pub(super) candidates: u64,
    pub(super) generated: &'a Generated<'a>,
}

impl Responder<'_> {
    /// The body, where it is no stream.
    pub(super) fn json(&self) -> Value {
        let (tokens, vector) = (self.request.tokens, json!({"values": VECTOR}));
        match self.request.method {
            Method::CountTokens => {
                json!({"totalTokens": tokens, "promptTokensDetails": details(tokens)})
            }
            Method::Embed => json!({"embedding": vector}),
            Method::EmbedBatch => json!({"embeddings": vec![vector; self.request.inputs]}),
            Method::Generate | Method::Stream => self.last(&text(self.generated.output)),
        }
    }

    /// The server-sent events, each with the empty line that ends it.
    pub(super) fn frames(&self) -> Vec<Bytes> {
        self.chunks().map(|chunk| format!("data: {chunk}\r\n\r\n").into()).collect()
    }

    /// The same as elements of one array, which is what comes without `alt=sse`.
    pub(super) fn elements(&self) -> Vec<Bytes> {
        let begin = |number| if number == 0 { "[" } else { ",\r\n" };
        let chunks = self.chunks().enumerate();
        let elements = chunks.map(|(number, chunk)| format!("{}{chunk}", begin(number)).into());
        elements.chain([Bytes::from_static(b"]")]).collect()
    }

    /// The responses of a stream. Each states the usage so far; the last one counts.
    fn chunks(&self) -> impl Iterator<Item = Value> {
        // A call comes whole, at the end.
        let text_tokens = if self.tool().is_some() { 0 } else { self.generated.output };
        let texts = (0..self.candidates).flat_map(move |index| {
            deltas(text_tokens).map(move |text| candidate(index, &json!({"text": text})))
        });
        texts.map(|candidate| self.response(&[candidate], None)).chain([self.last("")])
    }

    /// The response that ends all candidates, with the call or this text.
    fn last(&self, text: &str) -> Value {
        let part = match self.tool() {
            Some(tool) => json!({"functionCall": {"name": tool.name, "args": tool.arguments}}),
            None => json!({"text": text}),
        };
        let mut ends: Vec<Value> = (0..self.candidates).map(|i| candidate(i, &part)).collect();
        ends.iter_mut().for_each(|end| end["finishReason"] = json!(self.finish_reason()));
        self.response(&ends, Some(self.generated.usage.output))
    }

    /// The call that is made in place of a text.
    fn tool(&self) -> Option<&ToolCall> {
        self.request.forced_call.as_ref().filter(|_| !self.generated.truncated)
    }

    fn response(&self, candidates: &[Value], output: Option<u64>) -> Value {
        let input = self.generated.usage.input;
        let mut usage = json!({
            "promptTokenCount": input,
            "totalTokenCount": input + output.unwrap_or(0),
            "promptTokensDetails": details(input),
        });
        if let Some(output) = output {
            usage["candidatesTokenCount"] = json!(output);
            usage["candidatesTokensDetails"] = details(output);
        }
        json!({
            "candidates": candidates,
            "usageMetadata": usage,
            "modelVersion": self.request.model,
            "responseId": self.generated.id,
        })
    }

    fn finish_reason(&self) -> &'static str {
        if self.generated.truncated { "MAX_TOKENS" } else { "STOP" }
    }
}

fn candidate(index: u64, part: &Value) -> Value {
    json!({"content": {"parts": [part], "role": "model"}, "index": index})
}

fn details(tokens: u64) -> Value {
    json!([{"modality": "TEXT", "tokenCount": tokens}])
}
