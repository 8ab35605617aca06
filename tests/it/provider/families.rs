//! Differences between providers: lookup, charges and settlement.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate::provider::{
    ANTHROPIC, AZURE, BEDROCK, CEREBRAS, COHERE, COMPATIBLE, DEEPSEEK, Estimate, GEMINI, GROQ,
    HUGGINGFACE, LLAMA_CPP, MISTRAL, OLLAMA, OPENAI, OPENROUTER, Profile, Scanner, TOGETHER,
    VERTEX, VERTEX_ANTHROPIC, VLLM, VOYAGE, WRITER,
};
use tollgate::quota::{Algorithm, Cost, Dimension, SettleAt, Usage};

const USAGE: Usage = Usage { input: 1_000, output: 50, cache_read: 600, cache_write: 100 };

#[test]
fn profile_is_found_by_host_path_or_gateway() {
    for (url, profile) in FOUND {
        assert_eq!(Profile::find(url), *profile, "{url}");
    }
    for profile in Profile::all() {
        assert_eq!(Profile::named(profile.name()), Some(*profile));
    }
}

#[test]
fn model_is_read_from_body_path_or_deployment() {
    for (url, body, model) in [
        (
            "https://x.openai.azure.com/openai/deployments/mine/chat/completions?api-version=1",
            "{}",
            "mine",
        ),
        ("/openai/deployments/mine/chat/completions", r#"{"model":"gpt-4o"}"#, "mine"),
        ("/openai/v1/responses", r#"{"model":"mine"}"#, "mine"),
        ("/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "{}", "gemini-2.5-flash"),
        (
            "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@20250101:rawPredict",
            "{}",
            "claude-x@20250101",
        ),
        ("/model/us.amazon.nova-micro-v1%3A0/converse", "{}", "us.amazon.nova-micro-v1:0"),
        (
            "/model/arn:aws:bedrock:us-east-1:1:inference-profile/abc/invoke",
            "not JSON",
            "arn:aws:bedrock:us-east-1:1:inference-profile/abc",
        ),
    ] {
        let estimate = Profile::find(url).read_request(url, body.as_bytes());
        assert_eq!(estimate.model.as_deref(), Some(model), "{url}");
    }
    // The path takes precedence.
    for (path, body, model) in [
        ("/v1beta/models/m:embedContent", r#"{"model":"models/other"}"#, Some("m")),
        ("/v1beta/interactions", r#"{"model":"models/gemini-3"}"#, Some("gemini-3")),
        ("/v1/models/meta/llama-3/predictions", "{}", Some("meta/llama-3")),
        ("/serving-endpoints/mine/invocations", "{}", Some("mine")),
        ("/v1/engines/davinci/completions", "{}", Some("davinci")),
        ("/ml/v1/text/chat", r#"{"model_id":"ibm/granite"}"#, Some("ibm/granite")),
        ("/v1/models/ft:gpt-4o:org", "", None),
        ("/v1/chat/completions", r#"{"model":"ft:gpt-4o:org::id"}"#, Some("ft:gpt-4o:org::id")),
    ] {
        assert_eq!(read(COMPATIBLE, path, body).model.as_deref(), model, "{path}");
    }
    assert_eq!(OPENAI.read_request("/v1/models/gpt-4o", b"").model, None, "requests no tokens");
    assert_eq!(BEDROCK.read_request("/model/%ff/converse", b"{}").model, None);
}

/// Azure has quotas per deployment.
#[test]
fn azure_deployment_in_path_is_the_model_of_every_operation() {
    let form = "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nother\r\n--x--\r\n";
    let json = r#"{"model":"other","messages":[],"input":"x","prompt":"x"}"#;
    for (operation, body) in [
        ("chat/completions", json),
        ("completions", json),
        ("responses", json),
        ("embeddings", json),
        ("images/generations", json),
        ("images/edits", form),
        ("audio/speech", json),
        ("audio/transcriptions", form),
        ("audio/translations", "model=other&file=x"),
        ("extensions/chat/completions", json),
        ("chat/completions", "not JSON"),
        ("chat/completions", ""),
    ] {
        for path in
            ["/openai/deployments/my%2Down", "/openai/Deployments/my-own", "/gw/deployments/my-own"]
        {
            let url = format!("https://x.openai.azure.com{path}/{operation}?api-version=1");
            for profile in [AZURE, COMPATIBLE] {
                let model = profile.read_request(&url, body.as_bytes()).model;
                assert_eq!(model.as_deref(), Some("my-own"), "{url}");
                assert_eq!(profile.read_head(&url, 9).model, model, "{url}");
            }
        }
        let url = format!("https://x.openai.azure.com/openai/v1/{operation}");
        let stated = AZURE.read_request(&url, body.as_bytes()).model;
        assert_eq!(stated.as_deref(), body.contains("other").then_some("other"), "{url}");
    }
}

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
fn bedrock_charges_claude_output_five_times() {
    let body = r#"{"messages":[{"role":"user","content":[{"text":"12345678"}]}],
                   "inferenceConfig":{"maxTokens":300}}"#;
    for (model, burn_down) in [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1%3A0", 5),
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", 5),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", 1),
        ("anthropic.claude-v2", 1),
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
fn text_of_every_body_shape_is_counted() {
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

const FOUND: &[(&str, Profile)] = &[
    ("https://api.openai.com/v1/responses", OPENAI),
    ("https://mine.openai.azure.com/openai/v1/responses", AZURE),
    ("https://mine.services.ai.azure.com/models/chat/completions", AZURE),
    ("http://proxy/openai/deployments/d/chat/completions", AZURE),
    ("https://api.anthropic.com/v1/messages", ANTHROPIC),
    ("http://localhost:4000/anthropic/v1/messages?beta=true", ANTHROPIC),
    (
        "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
        VERTEX_ANTHROPIC,
    ),
    (
        "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
        VERTEX,
    ),
    ("https://aiplatform.googleapis.com/v1/p/endpoints/openapi/chat/completions", VERTEX),
    ("https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", GEMINI),
    ("http://proxy/x/v1beta/models/gemini-2.5-pro:generateContent", GEMINI),
    ("http://proxy/google-vertex/v1/publishers/google/models/m:generateContent", VERTEX),
    ("https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", BEDROCK),
    ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/model/m/invoke", BEDROCK),
    ("https://bedrock-mantle.us-east-1.api.aws/v1/chat/completions", BEDROCK),
    ("http://proxy/bedrock/model/m%3A0/converse-stream", BEDROCK),
    ("https://api.mistral.ai/v1/chat/completions", MISTRAL),
    ("https://api.groq.com/openai/v1/chat/completions", GROQ),
    ("http://localhost/groq/openai/v1/chat/completions", GROQ),
    ("https://api.cohere.com/v2/chat", COHERE),
    ("https://api.deepseek.com/chat/completions", DEEPSEEK),
    ("https://openrouter.ai/api/v1/chat/completions", OPENROUTER),
    ("https://api.together.xyz/v1/chat/completions", TOGETHER),
    ("https://api.cerebras.ai/v1/chat/completions", CEREBRAS),
    ("https://router.huggingface.co/together/v1/chat/completions", HUGGINGFACE),
    ("https://api.writer.com/v1/chat", WRITER),
    ("https://api.voyageai.com/v1/embeddings", VOYAGE),
    ("http://127.0.0.1:11434/v1/chat/completions", OLLAMA),
    ("http://gpu-7/api/chat", OLLAMA),
    ("http://gpu-7:8000/v1/chat/completions", COMPATIBLE),
    ("https://api.openai.com.evil.com/v1/chat/completions", COMPATIBLE),
    ("https://evil.com/?x=https://api.openai.com/", COMPATIBLE),
    ("", COMPATIBLE),
];
