//! An answer: one JSON object, server-sent events, or one JSON array.

use bytes::Bytes;
use serde_json::{Value, json};

use super::call::Request;
use super::target::Method;
use crate::simulate::format::Made;
use crate::simulate::text::{VECTOR, deltas, text};

/// What was made, and for whom.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) call: &'a Request,
    pub(super) candidates: u64,
    pub(super) made: &'a Made<'a>,
}

impl Answer<'_> {
    /// The body, where it is no stream.
    pub(super) fn json(&self) -> Value {
        let (tokens, vector) = (self.call.tokens, json!({"values": VECTOR}));
        match self.call.method {
            Method::CountTokens => {
                json!({"totalTokens": tokens, "promptTokensDetails": details(tokens)})
            }
            Method::Embed => json!({"embedding": vector}),
            Method::EmbedBatch => json!({"embeddings": vec![vector; self.call.inputs]}),
            Method::Generate | Method::Stream => {
                let whole = text(self.made.output);
                let end = Some(self.finish_reason());
                let each = (0..self.candidates).map(|index| candidate(index, &whole, end));
                self.response(&each.collect::<Vec<_>>(), Some(self.made.usage.output))
            }
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
        let texts = (0..self.candidates).flat_map(|index| {
            deltas(self.made.output).map(move |text| candidate(index, &text, None))
        });
        let ends = (0..self.candidates).map(|i| candidate(i, "", Some(self.finish_reason())));
        let last = self.response(&ends.collect::<Vec<_>>(), Some(self.made.usage.output));
        texts.map(|candidate| self.response(&[candidate], None)).chain([last])
    }

    fn response(&self, candidates: &[Value], output: Option<u64>) -> Value {
        let input = self.made.usage.input;
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
            "modelVersion": self.call.model,
            "responseId": self.made.id,
        })
    }

    fn finish_reason(&self) -> &'static str {
        if self.made.cut { "MAX_TOKENS" } else { "STOP" }
    }
}

fn candidate(index: u64, text: &str, end: Option<&str>) -> Value {
    let mut candidate = json!({
        "content": {"parts": [{"text": text}], "role": "model"},
        "index": index,
    });
    if let Some(end) = end {
        candidate["finishReason"] = json!(end);
    }
    candidate
}

fn details(tokens: u64) -> Value {
    json!([{"modality": "TEXT", "tokenCount": tokens}])
}
