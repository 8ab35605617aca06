//! Streamed responses as server-sent events.

use bytes::Bytes;
use serde_json::{Value, json};

use super::responder::Responder;
use crate::text::split;
use crate::tool_call::ToolCall;

impl Responder<'_> {
    /// Returns the events in order, each with its terminating empty line.
    pub(super) fn frames(&self) -> Vec<Bytes> {
        let (block, deltas) = match self.tool() {
            Some(tool) => self.tool_use_deltas(tool),
            None => self.text_deltas(),
        };
        let mut events = vec![
            json!({"type": "message_start", "message": self.message(self.generated.output.min(FIRST))}),
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "ping"}),
        ];
        let delta = |delta| json!({"type": "content_block_delta", "index": 0, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.extend([
            json!({"type": "content_block_stop", "index": 0}),
            json!({
                "type": "message_delta",
                "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null},
                "usage": self.last_usage(),
            }),
            json!({"type": "message_stop"}),
        ]);
        events.iter().map(frame).collect()
    }

    /// Returns the initial empty content block, and its deltas.
    fn text_deltas(&self) -> (Value, Vec<Value>) {
        let deltas =
            split(self.generated.text).map(|text| json!({"type": "text_delta", "text": text}));
        (json!({"type": "text", "text": ""}), deltas.collect())
    }

    /// Returns the initial content block of a tool call, and its deltas. The first delta is empty, as in
    /// recordings.
    fn tool_use_deltas(&self, tool: &ToolCall) -> (Value, Vec<Value>) {
        let parts = [String::new()].into_iter().chain(tool.deltas());
        let deltas = parts.map(|json| json!({"type": "input_json_delta", "partial_json": json}));
        (self.tool_use(tool, &json!({})), deltas.collect())
    }
}

fn frame(event: &Value) -> Bytes {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n").into()
}

/// The output tokens in `message_start`: those generated when it is sent, 1 to 8 in recordings.
const FIRST: u64 = 1;
