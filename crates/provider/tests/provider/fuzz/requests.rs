//! Request bodies of any content are read by every profile without a panic.

use paceline_provider::Profile;

use paceline_testing::fuzz::fuzz;

#[test]
fn request_bodies_are_read_without_panic() {
    let seeds: Vec<_> = SEEDS
        .iter()
        .flat_map(|seed| (0..2_u8).map(move |at| [&[at], seed.as_bytes()].concat()))
        .collect();
    let profiles = profiles();
    fuzz("requests", &seeds, |input| {
        let [path, body @ ..] = input else { return };
        let path = PATHS[usize::from(*path) % PATHS.len()];
        for profile in &profiles {
            let estimate = profile.read_request(path, body);
            // The estimate can also be displayed.
            let _ = format!("{estimate:?}");
        }
    });
}

fn profiles() -> Vec<Profile> {
    let profiles = Profile::all().iter().copied();
    #[cfg(feature = "tokenizer")]
    let profiles = profiles.chain([paceline_provider::OPENAI.with_tokenizer()]);
    profiles.collect()
}

const PATHS: &[&str] = &[
    "/v1/chat/completions",
    "https://api.openai.com/v1/responses",
    "/v1/embeddings",
    "/v1/completions",
    "/v1/messages",
    "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    "/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-pro:generateContent",
    "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream",
    "/model/amazon.titan-text-lite-v1/invoke",
    "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
    "/api/chat",
    "/v2/chat",
    "",
    "%",
    "/model/%FF%zz/invoke",
];

const SEEDS: &[&str] = &[
    r#"{"model":"gpt-4o","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hi \u00e9"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ","detail":"high"}},{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}],"max_tokens":50,"n":2,"stream":true,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}}}]}"#,
    r#"{"model":"gpt-4o","input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"function_call_output","output":"7"}],"instructions":"x","max_output_tokens":90,"previous_response_id":"r"}"#,
    r#"{"model":"text-embedding-3-small","input":["a","b",[1,2,3]],"encoding_format":"base64"}"#,
    r#"{"model":"claude-sonnet-4-5","max_tokens":1024,"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"y"}]}]}],"thinking":{"type":"enabled","budget_tokens":2000}}"#,
    r#"{"contents":[{"role":"user","parts":[{"text":"Hi"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}},{"fileData":{"fileUri":"gs://x"}}]}],"systemInstruction":{"parts":[{"text":"x"}]},"generationConfig":{"maxOutputTokens":10,"candidateCount":2,"thinkingConfig":{"thinkingBudget":5}},"tools":[{"functionDeclarations":[{"name":"f"}]}]}"#,
    r#"{"messages":[{"role":"user","content":[{"text":"Hi"},{"image":{"format":"png","source":{"bytes":"iVBORw0KGgo="}}}]}],"inferenceConfig":{"maxTokens":30},"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{}}}}]}}"#,
    r#"{"inputText":"Hi","textGenerationConfig":{"maxTokenCount":10}}"#,
    r#"{"model":"llama3.2","messages":[{"role":"user","content":"Hi","images":["iVBORw0KGgo="]}],"options":{"num_predict":5}}"#,
    r#"{"model":"m","prompt":["a","b"],"best_of":3,"max_tokens":7}"#,
];
