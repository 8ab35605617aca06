//! Usage read from small responses in the formats of each provider.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use paceline_provider::{
    ANTHROPIC, AZURE, BEDROCK, COHERE, COMPATIBLE, GEMINI, LLAMA_CPP, OLLAMA, Scanner, VOYAGE,
};

#[test]
fn usage_is_read_in_each_format_of_a_provider() {
    for (profile, body, usage) in [
        (
            ANTHROPIC,
            r#"{"usage":{"input_tokens":3,"cache_read_input_tokens":5,"cache_creation_input_tokens":7,"output_tokens":9}}"#,
            [15, 9, 5, 7],
        ),
        (
            GEMINI,
            r#"{"usageMetadata":{"promptTokenCount":5,"toolUsePromptTokenCount":2,"candidatesTokenCount":3,"thoughtsTokenCount":4,"totalTokenCount":14,"cachedContentTokenCount":1}}"#,
            [7, 7, 1, 0],
        ),
        (
            GEMINI,
            r#"{"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":20}}"#,
            [5, 3, 0, 0],
        ),
        (
            BEDROCK,
            r#"{"usage":{"inputTokens":3,"outputTokens":9,"cacheReadInputTokens":5,"cacheWriteInputTokens":7}}"#,
            [15, 9, 5, 7],
        ),
        (BEDROCK, r#"{"usage":{"prompt_tokens":3,"completion_tokens":9}}"#, [3, 9, 0, 0]),
        (
            COHERE,
            r#"{"meta":{"billed_units":{"input_tokens":1,"output_tokens":2},"tokens":{"input_tokens":3,"output_tokens":9}}}"#,
            [3, 9, 0, 0],
        ),
        (OLLAMA, r#"{"prompt_eval_count":3,"eval_count":9,"done":true}"#, [3, 9, 0, 0]),
        (LLAMA_CPP, r#"{"timings":{"prompt_n":3,"predicted_n":9}}"#, [3, 9, 0, 0]),
        // Formats of other providers on hosts with a separate profile.
        (
            AZURE,
            r#"{"usage":{"input_tokens":3,"cache_read_input_tokens":5,"cache_creation_input_tokens":7,"output_tokens":9}}"#,
            [15, 9, 5, 7],
        ),
        (
            BEDROCK,
            r#"{"usage":{"prompt_tokens":30,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":20}}}"#,
            [30, 9, 20, 0],
        ),
        (
            COMPATIBLE,
            r#"{"usage":{"billed_units":{"input_tokens":1},"tokens":{"input_tokens":3,"output_tokens":9}}}"#,
            [3, 9, 0, 0],
        ),
        (
            OLLAMA,
            r#"{"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}"#,
            [1, 2, 0, 0],
        ),
        // A gateway that adds zeros under the names of another format.
        (
            COMPATIBLE,
            r#"{"usage":{"prompt_tokens":3,"completion_tokens":9,"input_tokens":0,"output_tokens":0}}"#,
            [3, 9, 0, 0],
        ),
        (
            GEMINI,
            r#"{"usage":{"total_input_tokens":10,"total_output_tokens":7,"total_thought_tokens":20,"total_tool_use_tokens":1,"total_cached_tokens":4}}"#,
            [11, 27, 4, 0],
        ),
        // The rest of the total is not output.
        (
            GEMINI,
            r#"{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":9,"totalTokenCount":150}}"#,
            [10, 9, 0, 0],
        ),
        (GEMINI, r#"{"usageMetadata":{"trafficType":"ON_DEMAND"}}"#, [0, 0, 0, 0]),
        (
            BEDROCK,
            r#"{"metadata":{"usage":{"inputTokens":5,"outputTokens":9,"cacheReadInputTokenCount":500}}}"#,
            [505, 9, 500, 0],
        ),
        (VOYAGE, r#"{"usage":{"total_tokens":3}}"#, [3, 0, 0, 0]),
    ] {
        let mut scanner = Scanner::new(profile, Some("application/json"));
        scanner.feed(body.as_bytes());
        let read = scanner.finish().usage.unwrap_or_else(|| panic!("{profile:?} {body}"));
        assert_eq!([read.input, read.output, read.cache_read, read.cache_write], usage, "{body}");
    }
}

#[test]
fn later_complete_usage_replaces_earlier_usage() {
    let mut headers = HeaderMap::new();
    for (name, value) in [("input", "30"), ("output", "51")] {
        let name = format!("x-amzn-bedrock-{name}-token-count");
        headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::from_static(value));
    }
    let scanned = |profile, bodies: &[&str]| {
        let mut scanner = Scanner::of(profile, &headers);
        bodies.iter().for_each(|body| scanner.feed(body.as_bytes()));
        scanner.finish().usage.map(|usage| (usage.input, usage.output, usage.cache_read))
    };
    assert_eq!(scanned(BEDROCK, &[r#"{"usage":{"inputTokens":30}}"#]), Some((30, 0, 0)));
    assert_eq!(scanned(BEDROCK, &[r#"{"usage":{}}"#]), Some((30, 51, 0)), "empty usage is ignored");
    assert_eq!(scanned(BEDROCK, &[r#"{"inputTextTokenCount":30}"#]), Some((30, 51, 0)));
    let first = r#"{"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":50,"cachedContentTokenCount":3}}"#;
    let last = r#"{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":7}}"#;
    assert_eq!(scanned(GEMINI, &[first, last]), Some((5, 7, 0)));
    for empty in [r#"{"usage":{}}"#, r#"{"usage":null}"#, r#"{"usageMetadata":null}"#] {
        assert_eq!(scanned(GEMINI, &[empty]), None, "{empty}");
    }
}
