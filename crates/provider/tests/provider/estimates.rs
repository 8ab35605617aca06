//! Estimates and charges by the rules of each provider.

use paceline_limiter::quota::{Algorithm, Cost, Dimension, SettleAt, Usage};
use paceline_provider::{
    ANTHROPIC, BEDROCK, CEREBRAS, Estimate, GEMINI, MISTRAL, OPENAI, Profile, VLLM,
};

const USAGE: Usage =
    Usage { input: 1_000, output: 50, cache_read: 600, cache_write: 100, long_cache_write: 0 };

#[test]
fn anthropic_charge_excludes_cache_reads() {
    let body = r#"{"model":"claude-sonnet-4-5","max_tokens":4096,"system":"1234","messages":[
                   {"role":"user","content":[{"type":"text","text":"12345678"}]}]}"#;
    let estimate = read(ANTHROPIC, "/v1/messages", body);
    assert_eq!(amounts(&estimate.cost), [3 + 2 * 4 + 3 + 4_096, 3 + 2 * 4 + 3, 4_096]);
    assert!(estimate.guesses_output(), "`max_tokens` is a ceiling, not a charge");
    assert_eq!(amounts(&ANTHROPIC.charge(&estimate.cost, &USAGE)), [450, 400, 50]);
    assert_eq!(ANTHROPIC.settles(&Dimension::InputTokens), SettleAt::FirstUsage);
    assert_eq!(ANTHROPIC.settles(&Dimension::OutputTokens), SettleAt::End);
}

#[test]
fn gemini_counts_input_only() {
    let body = r#"{"systemInstruction":{"parts":[{"text":"1234"}]},"contents":[{"parts":[
                   {"text":"12345678"},{"inlineData":{"mimeType":"image/png","data":"x"}}]}],
                   "generationConfig":{"maxOutputTokens":77,"candidateCount":2}}"#;
    let estimate = read(GEMINI, "/v1beta/models/m:generateContent", body);
    assert_eq!(amounts(&estimate.cost), [3 + 1 + 258, 3 + 1 + 258, 154]);
    assert_eq!(amounts(&GEMINI.charge(&estimate.cost, &USAGE)), [1_000, 1_000, 50]);
    assert_eq!(GEMINI.algorithm(), Algorithm::TokenBucket);
}

#[test]
fn bedrock_charges_output_by_the_burndown_of_the_model() {
    let body = r#"{"messages":[{"role":"user","content":[{"text":"12345678"}]}],
                   "inferenceConfig":{"maxTokens":300}}"#;
    for (model, burn_down) in [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1%3A0", 5),
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", 5),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", 1),
        ("anthropic.claude-v2", 1),
        ("anthropic.claude-opus-4-7", 5),
        ("us.anthropic.claude-opus-4-8", 15),
        ("global.anthropic.claude-sonnet-5", 10),
        ("anthropic.claude-opus-5", 10),
        ("anthropic.claude-fable-5-1", 10),
        ("us.openai.gpt-6-sol", 10),
        ("openai.gpt-oss-120b-1:0", 1),
        ("amazon.nova-lite-v1:0", 1),
    ] {
        let estimate = read(BEDROCK, &format!("/model/{model}/converse"), body);
        assert_eq!(estimate.cost.amount(&Dimension::Tokens), 2 + 1 + 3 + 300, "{model}");
        assert_eq!(
            (estimate.terms.burn_down, estimate.guesses_output()),
            (burn_down, false),
            "{model}"
        );
        assert_eq!(amounts(&BEDROCK.charge(&estimate.cost, &USAGE))[0], 450);
    }
}

#[test]
fn mistral_charge_is_read_from_header() {
    let headers = [("x-ratelimit-tokens-query-cost", "107")]
        .into_iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
    assert_eq!(MISTRAL.charged_in_head(&headers), Some(107));
    assert_eq!(OPENAI.charged_in_head(&headers), None);
}

#[test]
fn cerebras_reserves_the_bound_or_the_context() {
    let bounded = r#"{"messages":[{"content":"12345678"}],"max_completion_tokens":100}"#;
    let estimate = read(CEREBRAS, "/v1/chat/completions", bounded);
    assert_eq!(amounts(&estimate.cost), [9 + 100, 9, 100]);
    let free = read(CEREBRAS, "/v1/chat/completions", r#"{"messages":[{"content":"12345678"}]}"#);
    assert_eq!(amounts(&free.cost), [8_192, 9, 8_183]);
    assert!(!free.guesses_output());
}

#[test]
fn text_of_every_body_format_is_counted() {
    for (path, body, input) in [
        (
            "/v1/chat",
            r#"{"preamble":"1234","chat_history":[{"role":"USER","message":"1234"}],"message":"12345678"}"#,
            4,
        ),
        (
            "/model/m/invoke",
            r#"{"inputText":"12345678","textGenerationConfig":{"maxTokenCount":9}}"#,
            2,
        ),
        (
            "/api/generate",
            r#"{"system":"1234","prompt":"12345678","options":{"num_predict":9}}"#,
            3,
        ),
        ("/v1/embed", r#"{"texts":["1234","5678"]}"#, 2),
        ("/v1/projects/p/models/m:predict", r#"{"instances":[{"content":"12345678"}]}"#, 2),
        (
            "/v1beta/models/m:batchEmbedContents",
            r#"{"requests":[{"content":{"parts":[{"text":"12345678"}]}}]}"#,
            2,
        ),
        ("/v2/rerank", r#"{"query":"1234","documents":["5678",{"text":"1234"}]}"#, 3),
        (
            "/model/m/converse",
            r#"{"messages":[{"content":[{"toolResult":{"content":[{"text":"1234"},{"json":{"a":1}}]}}]}]}"#,
            1,
        ),
    ] {
        // Subtracts the tokens around the texts of a conversation.
        let estimate = read(VLLM, path, body);
        let framing = VLLM.read_request(path, blank(body).as_bytes());
        let of = |estimate: &Estimate| estimate.cost.amount(&Dimension::InputTokens);
        assert!(estimate.exact, "{body}");
        assert!(of(&estimate).abs_diff(of(&framing)).abs_diff(input) <= 1, "{body}: {estimate:?}");
    }
    for (path, body) in [
        ("/x", r#"{"messages":[],"generation_config":{"max_output_tokens":9}}"#),
        ("/x", r#"{"messages":[],"max_gen_len":9}"#),
        ("/api/chat", r#"{"messages":[],"options":{"num_predict":9}}"#),
        ("/x", r#"{"messages":[],"inferenceConfig":{"max_new_tokens":9}}"#),
    ] {
        assert_eq!(read(VLLM, path, body).max_output, Some(9), "{body}");
    }
}

#[test]
fn images_audio_and_files_have_estimated_tokens() {
    let png =
        "iVBORw0KGgoAAAANSUhEUgAABAAAAAQACAYAAAB/HSuDAAAAAXNSR0IArs4c6QAAAARnQU1BAACxjwv8YQUAAAAJ";
    let image =
        format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{png}"}}}}"#);
    let source = format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{png}"}}}}"#
    );
    let inline = format!(r#"{{"inlineData":{{"mimeType":"image/png","data":"{png}"}}}}"#);
    let low = r#"{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}}"#;
    let sound =
        format!(r#"{{"inlineData":{{"mimeType":"audio/mp3","data":"{}"}}}}"#, "A".repeat(64_000));
    let pdf = r#"{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}"#;
    // 1,024 x 1,024: four tiles of 512 once it is 768 x 768; 1,398 times 750 pixels; four of 768.
    for (profile, part, tokens) in [
        (OPENAI, &*image, 85 + 4 * 170),
        (OPENAI, low, 85),
        (ANTHROPIC, &source, 1_399),
        (GEMINI, &inline, 4 * 258),
        (GEMINI, &sound, 3 * 32),
        (ANTHROPIC, pdf, 2_250),
    ] {
        let input = |parts: &str| {
            let body = format!(r#"{{"messages":[{{"content":[{parts}]}}]}}"#);
            read(profile, "/v1/messages", &body).cost.amount(&Dimension::InputTokens)
        };
        assert_eq!(input(part) - input(""), tokens, "{profile:?} {part:.60}");
    }
}

#[test]
fn audio_referenced_by_id_costs_no_tokens() {
    let cost = |audio: &str| {
        let body = format!(r#"{{"messages":[{{"role":"assistant","audio":{audio}}}]}}"#);
        read(OPENAI, "/v1/chat/completions", &body).cost
    };
    let empty = cost("{}");
    assert_eq!(cost(r#"{"id":"audio_abc"}"#), empty);
    assert_eq!(empty.amount(&Dimension::Tokens), 2);
    assert_ne!(cost(r#"{"data":"UklGRg=="}"#), empty);
    assert_ne!(cost(r#"{"url":"https://host/a.wav"}"#), empty);
}

fn read(profile: Profile, path: &str, body: &str) -> Estimate {
    profile.read_request(path, body.as_bytes())
}

/// Returns tokens, input tokens and output tokens.
fn amounts(cost: &Cost) -> [u64; 3] {
    [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens].map(|d| cost.amount(&d))
}

/// Returns the body without the digits that make up its text.
fn blank(body: &str) -> String {
    body.replace("12345678", "").replace("1234", "").replace("5678", "")
}
