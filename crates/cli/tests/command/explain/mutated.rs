//! Mutated recordings are explained without a panic.

use std::ops::ControlFlow;

use paceline_cli::explain::{JsonLine, Summary, TableRow, explain, har};

use paceline_testing::fuzz::fuzz;

#[test]
fn mutated_recordings_are_explained_without_panic() {
    let seeds: Vec<_> = SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    fuzz("har", &seeds, |input| {
        let mut summary = Summary::default();
        let read = har::read(input, |entry| {
            let explanation = explain(&entry);
            summary.add(&explanation);
            let line = JsonLine::new("x.har", 0, &explanation).to_string();
            assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok(), "{line}");
            let _ = TableRow::new(0, &explanation).to_string();
            ControlFlow::Continue(())
        });
        let _ = (summary.to_string(), read.map_err(|error| error.to_string()));
    });
}

const SEEDS: &[&str] = &[
    r#"{"log":{"version":"1.2","entries":[{"startedDateTime":"2026-02-01T12:00:00.123Z","request":{"method":"POST","url":"https://api.openai.com/v1/chat/completions","headers":[],"postData":{"mimeType":"application/json","text":"{\"model\":\"gpt-4o\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}"}},"response":{"status":200,"headers":[{"name":"x-ratelimit-limit-tokens","value":"30000"},{"name":"x-ratelimit-remaining-tokens","value":"29993"},{"name":"x-ratelimit-reset-tokens","value":"14ms"}],"content":{"mimeType":"application/json","text":"{\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":9}}"}}}]}}"#,
    r#"{"log":{"entries":[{"request":{"method":"POST","url":"https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse-stream"},"response":{"status":200,"headers":[{"name":"content-encoding","value":"gzip"}],"content":{"mimeType":"application/vnd.amazon.eventstream","encoding":"base64","text":"AAAAEAAAAAAF6EjrfV5p"}}}]}}"#,
    "{\"request\":{\"method\":\"POST\",\"url\":\"https://api.anthropic.com/v1/messages\",\"postData\":{\"text\":\"{}\"}},\"response\":{\"status\":429,\"headers\":[{\"name\":\"retry-after\",\"value\":\"7\"}],\"content\":{\"text\":\"{\\\"type\\\":\\\"error\\\"}\"}}}\n{\"request\":{},\"response\":{}}\n",
];
