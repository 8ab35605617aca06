//! Recorded bodies, scanned in random chunks and compared with independent decoders.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use paceline_limiter::quota::Usage;
use paceline_provider::BEDROCK;
use serde_json::Value;

use super::recordings::{Recorded, all};

#[test]
fn recorded_body_scan_is_independent_of_chunks() {
    let Some(entries) = all() else { return };
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for entry in &entries {
        let expected = entry.scan(entry.profile(), || usize::MAX);
        for longest in [1, 20, 1_000, 16_384] {
            let cut = entry.scan(entry.profile(), || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                1 + (random >> 33) as usize % longest
            });
            assert_eq!(cut, expected, "{} {}, pieces of {longest}", entry.file, entry.index);
        }
    }
}

#[test]
fn recorded_event_streams_have_usage_of_last_message() {
    let Some(entries) = all() else { return };
    let mut converse = 0;
    let mut invoke = 0;
    for entry in entries.iter().filter(|e| e.content_type == "application/vnd.amazon.eventstream") {
        let (mut usage, mut metrics) = (Value::Null, Value::Null);
        for payload in payloads(&entry.response) {
            let inside = payload["bytes"].as_str().map(|text| {
                let json = BASE64_STANDARD.decode(text).expect("base64");
                serde_json::from_slice::<Value>(&json).expect("JSON")
            });
            metrics = inside.map_or(metrics, |i| i["amazon-bedrock-invocationMetrics"].clone());
            usage = if payload["usage"].is_null() { usage } else { payload["usage"].clone() };
        }
        converse += usize::from(!usage.is_null());
        invoke += usize::from(!metrics.is_null());
        let stated = |of: &Value, input: &str, output: &str| {
            let count = |name| of[name].as_u64();
            Some(Usage { input: count(input)?, output: count(output)?, ..Usage::default() })
        };
        let expected = stated(&usage, "inputTokens", "outputTokens").or(stated(
            &metrics,
            "inputTokenCount",
            "outputTokenCount",
        ));
        let scanned = entry.scan(BEDROCK, || usize::MAX);
        // The recorded requests used no cache.
        assert_eq!(scanned.usage, expected, "entry {}", entry.index);
        assert_eq!(scanned.error, None, "entry {}", entry.index);
    }
    assert!(converse > 10 && invoke > 5, "{converse} of converse, {invoke} of invoke");
}

/// Returns the JSON of the messages of an event stream.
fn payloads(mut body: &[u8]) -> Vec<Value> {
    let mut payloads = Vec::new();
    while !body.is_empty() {
        let word = |at: usize| {
            u32::from_be_bytes(body[at..at + 4].try_into().expect("four bytes")) as usize
        };
        let (length, headers) = (word(0), word(4));
        let payload = &body[12 + headers..length - 4];
        payloads.push(serde_json::from_slice(payload).expect("JSON"));
        body = &body[length..];
    }
    payloads
}
