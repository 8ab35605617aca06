//! Scanning of response bodies in chunks of 16 KiB, compared with a JSON parser and a plain copy:
//! `cargo bench --bench stream`.
//!
//! For a stream, the parser runs on the data of each event.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use paceline::provider::{Profile, Scanner};
use serde::de::IgnoredAny;
use serde_json::Value;

struct Body {
    name: &'static str,
    profile: &'static str,
    content_type: &'static str,
    text: String,
}

fn bodies() -> Vec<Body> {
    let body = |name, profile, content_type, text| Body { name, profile, content_type, text };
    vec![
        body("chat, events", "openai", SSE, chat_events()),
        body("messages, events", "anthropic", SSE, message_events()),
        // Each event contains a usage, so all events must be read.
        body("generate, events", "gemini", SSE, generate_events()),
        body("chat, lines", "ollama", "application/x-ndjson", chat_lines()),
        body("chat, JSON", "openai", JSON, chat()),
        body("embeddings, JSON", "openai", JSON, embeddings()),
    ]
}

fn stream(criterion: &mut Criterion) {
    for body in bodies() {
        let mut group = criterion.benchmark_group(body.name);
        group.throughput(Throughput::Bytes(body.text.len() as u64));
        let text = body.text.as_bytes();
        let profile = Profile::named(body.profile).expect("a built-in profile");
        let scan = || {
            let mut scanner = Scanner::new(profile, Some(body.content_type));
            text.chunks(PIECE).for_each(|piece| scanner.feed(piece));
            scanner.finish()
        };
        assert!(scan().usage.is_some(), "{}", body.name);
        group.bench_function("scanner", |b| b.iter(scan));
        group.bench_function("serde_json::Value", |b| b.iter(|| parse::<Value>(text)));
        group.bench_function("serde_json::IgnoredAny", |b| b.iter(|| parse::<IgnoredAny>(text)));
        let mut copy = vec![0; PIECE];
        group.bench_function(BenchmarkId::from_parameter("copy"), |b| {
            b.iter(|| {
                for piece in text.chunks(PIECE) {
                    copy[..piece.len()].copy_from_slice(piece);
                    black_box(&mut copy);
                }
            });
        });
        group.finish();
    }
}

/// Parses the body, or each of its lines if it is a stream.
fn parse<T: serde::de::DeserializeOwned>(text: &[u8]) {
    if text.starts_with(b"{") && !text.ends_with(b"\n") {
        black_box(serde_json::from_slice::<T>(text).expect("JSON"));
        return;
    }
    for line in text.split(|byte| *byte == b'\n') {
        let json = line.strip_prefix(b"data: ").unwrap_or(line);
        if json.starts_with(b"{") {
            black_box(serde_json::from_slice::<T>(json).expect("JSON"));
        }
    }
}

fn chat_events() -> String {
    let head = r#"{"id":"chatcmpl-CAbcDefGhiJklMnoPqrStUvWxYz012","object":"chat.completion.chunk","created":1757000000,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_07871e2ad8""#;
    let mut text = String::new();
    for word in words(2_000) {
        let _ = write!(
            text,
            "data: {head},\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null,\"obfuscation\":\"aB3dE5\"}}\n\n"
        );
    }
    text + &format!(
        "data: {head},\"choices\":[],\"usage\":{{\"prompt_tokens\":19,\"completion_tokens\":2000,\"total_tokens\":2019}}}}\n\ndata: [DONE]\n\n"
    )
}

fn message_events() -> String {
    let mut text = String::from(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_01\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"claude-sonnet-4\",\"usage\":{\"input_tokens\":25,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":1}}}\n\n",
    );
    for word in words(2_000) {
        let _ = write!(
            text,
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{word}\"}}}}\n\n"
        );
    }
    text + "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":2000}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
}

fn generate_events() -> String {
    let words: Vec<_> = words(2_000).collect();
    let event = |words: &[&str]| {
        let text = words.concat();
        format!(
            "data: {{\"candidates\": [{{\"content\": {{\"parts\": [{{\"text\": \"{text}\"}}],\"role\": \"model\"}},\"index\": 0}}],\"usageMetadata\": {{\"promptTokenCount\": 10,\"candidatesTokenCount\": 40,\"totalTokenCount\": 50,\"promptTokensDetails\": [{{\"modality\": \"TEXT\",\"tokenCount\": 10}}]}},\"modelVersion\": \"gemini-2.5-flash\",\"responseId\": \"aBcDeFgHiJkLmNoP\"}}\r\n\r\n"
        )
    };
    words.chunks(40).map(event).collect()
}

fn chat_lines() -> String {
    let line = |word: &str| {
        format!(
            "{{\"model\":\"llama3.2\",\"created_at\":\"2025-10-01T12:00:00.123456789Z\",\"message\":{{\"role\":\"assistant\",\"content\":\"{word}\"}},\"done\":false}}\n"
        )
    };
    words(2_000).map(line).collect::<String>()
        + "{\"model\":\"llama3.2\",\"done\":true,\"prompt_eval_count\":26,\"eval_count\":2000}\n"
}

fn chat() -> String {
    let text: String = words(20_000).collect();
    format!(
        "{{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1757000000,\"model\":\"gpt-4o\",\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\",\"refusal\":null}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":19,\"completion_tokens\":20000,\"total_tokens\":20019}}}}"
    )
}

fn embeddings() -> String {
    let numbers: Vec<_> = (0..1_536).map(|n| format!("{:.9}", f64::from(n).sin() / 40.0)).collect();
    let row = numbers.join(",");
    let rows: Vec<_> = (0..32)
        .map(|n| format!("{{\"object\":\"embedding\",\"index\":{n},\"embedding\":[{row}]}}"))
        .collect();
    format!(
        "{{\"object\":\"list\",\"data\":[{}],\"model\":\"text-embedding-3-small\",\"usage\":{{\"prompt_tokens\":256,\"total_tokens\":256}}}}",
        rows.join(",")
    )
}

/// Returns text in the tokens of a model, with some escape sequences.
fn words(count: usize) -> impl Iterator<Item = &'static str> {
    const WORDS: &[&str] = &[
        " The",
        " highest",
        " mountain",
        " of",
        " the",
        " Alps",
        " is",
        " \\\"Mont",
        " Blanc",
        "\\\"",
        ",",
        " at",
        " ",
        "4",
        ",",
        "806",
        " m",
        ".",
        "\\n\\n",
        " It",
        " lies",
        " between",
        " Courmayeur",
        " and",
        " Chamonix",
        "-Mont-Blanc",
        ".",
        " caf\\u00e9",
        " first",
        " climbed",
        " in",
        " 1786",
    ];
    WORDS.iter().copied().cycle().take(count)
}

/// The size of a single read from a connection, in bytes.
const PIECE: usize = 16 * 1024;

const JSON: &str = "application/json";
const SSE: &str = "text/event-stream";

criterion_group!(benches, stream);
criterion_main!(benches);
