//! Streamed responses as server-sent events, in OpenAI's format.

use bytes::Bytes;
use serde_json::{Value, json};

use super::request::Endpoint;
use super::responder::{FINGERPRINT, Responder};
use super::response::part;
use super::tools::Event;
use crate::text::split;

impl Responder<'_> {
    /// Returns the events in order, each with its terminating empty line.
    pub(super) fn frames(&self) -> Vec<Bytes> {
        if self.request.endpoint == Endpoint::Responses {
            return self.response_frames();
        }
        let mut chunks: Vec<Value> =
            (0..self.request.choices).flat_map(|i| self.choice(i)).collect();
        if self.request.include_usage {
            chunks.iter_mut().for_each(|chunk| chunk["usage"] = Value::Null);
            let mut last = self.chunk(&json!([]));
            last["usage"] = self.usage();
            chunks.push(last);
        }
        let frames = chunks.iter().map(|chunk| Bytes::from(format!("data: {chunk}\n\n")));
        frames.chain([Bytes::from_static(b"data: [DONE]\n\n")]).collect()
    }

    /// Returns the chunks of one choice.
    fn choice(&self, index: u64) -> Vec<Value> {
        let end = Some(self.finish_reason());
        if self.request.endpoint == Endpoint::Completions {
            let piece = |text: String, end: Option<&str>| json!([{"text": text, "index": index, "logprobs": null, "finish_reason": end}]);
            let texts = split(self.generated.text).map(|text| self.chunk(&piece(text, None)));
            return texts.chain([self.chunk(&piece(String::new(), end))]).collect();
        }
        let piece = |delta: Value, end: Option<&str>| json!([{"index": index, "delta": delta, "logprobs": null, "finish_reason": end}]);
        let deltas = match self.tool() {
            Some(tool) => self.chat_call_deltas(tool, index),
            None => self.chat_deltas(),
        };
        let chunks = deltas.into_iter().map(|delta| self.chunk(&piece(delta, None)));
        chunks.chain([self.chunk(&piece(json!({}), end))]).collect()
    }

    /// Returns the deltas of a chat: the role, then the text.
    fn chat_deltas(&self) -> Vec<Value> {
        let role = json!({"role": "assistant", "content": "", "refusal": null});
        let texts = split(self.generated.text).map(|text| json!({"content": text}));
        [role].into_iter().chain(texts).collect()
    }

    fn chunk(&self, choices: &Value) -> Value {
        let (prefix, object) = match self.request.endpoint {
            Endpoint::Completions => ("cmpl-", "text_completion"),
            _ => ("chatcmpl-", "chat.completion.chunk"),
        };
        json!({
            "id": self.prefixed_id(prefix),
            "object": object,
            "created": self.created(),
            "model": self.request.model,
            "service_tier": "default",
            "system_fingerprint": FINGERPRINT,
            "choices": choices,
        })
    }

    fn response_frames(&self) -> Vec<Bytes> {
        let ended =
            if self.generated.truncated { "response.incomplete" } else { "response.completed" };
        let mut events = vec![
            ("response.created", json!({"response": self.response(false)})),
            ("response.in_progress", json!({"response": self.response(false)})),
        ];
        events.extend(match self.tool() {
            Some(tool) => self.function_call_events(tool),
            None => self.message_events(),
        });
        events.push((ended, json!({"response": self.response(true)})));
        events
            .into_iter()
            .enumerate()
            .map(|(number, (name, event))| frame(number, name, event))
            .collect()
    }

    fn message_events(&self) -> Vec<Event> {
        let whole = self.generated.text;
        let end = if self.generated.truncated { "incomplete" } else { "completed" };
        let mut events = vec![
            ("response.output_item.added", json!({"item": self.message("", "in_progress")})),
            ("response.content_part.added", self.with_part(json!({"part": part("")}))),
        ];
        events.extend(split(self.generated.text).map(|text| {
            ("response.output_text.delta", self.with_part(json!({"delta": text, "logprobs": []})))
        }));
        events.extend([
            ("response.output_text.done", self.with_part(json!({"text": whole, "logprobs": []}))),
            ("response.content_part.done", self.with_part(json!({"part": part(whole)}))),
            ("response.output_item.done", json!({"item": self.message(whole, end)})),
        ]);
        events
    }

    /// Adds the fields that identify the item and part of an event.
    fn with_part(&self, mut event: Value) -> Value {
        event["item_id"] = json!(self.prefixed_id("msg_"));
        event["content_index"] = json!(0);
        event
    }
}

/// Formats one event of a Responses stream.
fn frame(number: usize, name: &str, mut event: Value) -> Bytes {
    event["type"] = json!(name);
    event["sequence_number"] = json!(number);
    if event.get("response").is_none() {
        event["output_index"] = json!(0);
    }
    format!("event: {name}\ndata: {event}\n\n").into()
}
