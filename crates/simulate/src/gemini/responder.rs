//! Responses in Gemini's format: one JSON object, server-sent events, or one JSON array.

use bytes::Bytes;
use serde_json::{Value, json};

use super::request::Request;
use super::target::Method;
use crate::embedding;
use crate::format::Generated;
use crate::text::split;
use crate::tool_call::ToolCall;

/// A writer of the response to a request.
#[derive(Debug)]
pub(super) struct Responder<'a> {
    pub(super) request: &'a Request,
    pub(super) candidates: u64,
    pub(super) generated: &'a Generated<'a>,
}

impl Responder<'_> {
    /// Returns the body of a response that is not streamed.
    pub(super) fn json(&self) -> Value {
        let tokens = self.request.tokens;
        let vector = |dimensions: &u64| json!({"values": embedding::vector(*dimensions)});
        match self.request.method {
            Method::CountTokens => {
                json!({"totalTokens": tokens, "promptTokensDetails": details(tokens)})
            }
            Method::Embed => json!({"embedding": vector(&self.request.dimensions[0])}),
            Method::EmbedBatch => {
                json!({"embeddings": self.request.dimensions.iter().map(vector).collect::<Vec<_>>()})
            }
            Method::Generate | Method::Stream => self.last(self.generated.text),
        }
    }

    /// Returns the server-sent events, each with its terminating empty line.
    pub(super) fn frames(&self) -> Vec<Bytes> {
        self.chunks().map(|chunk| format!("data: {chunk}\r\n\r\n").into()).collect()
    }

    /// Returns the chunks as elements of one array, as sent without `alt=sse`.
    pub(super) fn elements(&self) -> Vec<Bytes> {
        let begin = |number| if number == 0 { "[" } else { ",\r\n" };
        let chunks = self.chunks().enumerate();
        let elements = chunks.map(|(number, chunk)| format!("{}{chunk}", begin(number)).into());
        elements.chain([Bytes::from_static(b"]")]).collect()
    }

    /// Returns the chunks of a stream. Each reports the usage so far.
    fn chunks(&self) -> impl Iterator<Item = Value> {
        // A tool call is sent in one piece, at the end.
        let text = if self.tool().is_some() { "" } else { self.generated.text };
        let texts = (0..self.candidates).flat_map(move |index| {
            split(text).map(move |text| candidate(index, &json!({"text": text})))
        });
        texts.map(|candidate| self.response(&[candidate], None)).chain([self.last("")])
    }

    /// Returns the chunk that ends all candidates, with the tool call or this text.
    fn last(&self, text: &str) -> Value {
        let part = match self.tool() {
            Some(tool) => json!({"functionCall": {"name": tool.name, "args": tool.arguments}}),
            None => json!({"text": text}),
        };
        let mut ends: Vec<Value> = (0..self.candidates).map(|i| candidate(i, &part)).collect();
        ends.iter_mut().for_each(|end| end["finishReason"] = json!(self.finish_reason()));
        self.response(&ends, Some(self.generated.usage.output))
    }

    /// Returns the tool call that replaces the text, if any.
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
