//! An answer as server-sent events.

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::Answer;
use crate::simulate::text::deltas;

impl Answer<'_> {
    /// The events in order, each with the empty line that ends it.
    pub(super) fn frames(&self) -> Vec<Bytes> {
        let mut events = vec![
            json!({"type": "message_start", "message": self.message(self.made.output.min(FIRST))}),
            json!({
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            }),
            json!({"type": "ping"}),
        ];
        events.extend(deltas(self.made.output).map(|text| {
            let delta = json!({"type": "text_delta", "text": text});
            json!({"type": "content_block_delta", "index": 0, "delta": delta})
        }));
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
}

fn frame(event: &Value) -> Bytes {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n").into()
}

/// The output that `message_start` states, recorded as 1 to 8: what is made when it is sent.
const FIRST: u64 = 1;
