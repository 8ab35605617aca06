//! What is reserved under a budget is the most that a request can cost, in whatever form it states its input and output.

use http::Request;
use paceline::limiter::Code;
use paceline::middleware::RateLimitLayer;
use paceline::price::{Price, Prices};
use paceline::provider::{ANTHROPIC, COHERE, GEMINI, OPENAI, OPENROUTER, Profile};
use paceline::quota::{Quota, Usd};
use tower::{Service, ServiceExt};

use super::inner::Frames;
use super::{builder, client_returning, held};

/// The context of the model `m`, in tokens.
const CONTEXT: u64 = 200_000;

/// Returns what is held of the account's budget for a request, or the code of its refusal. The price is a micro-dollar for
/// each token of input, or of output; that of `dear` is 50 for both.
async fn reserved(profile: Profile, path: &str, body: &str, of_input: bool) -> Result<u64, Code> {
    let token = Usd::from_micros(1_000_000);
    let free = Usd::from_micros(0);
    let (input, output) = if of_input { (token, free) } else { (free, token) };
    let price = Price::per_million(input, output).max_output(100_000).max_input(CONTEXT);
    let token = Usd::from_micros(50_000_000);
    let dear = Price::per_million(token, token).max_output(100_000);
    let prices = Prices::none().with("m", price.clone()).with("gpt-4o", price).with("dear", dear);
    let budget = Quota::new().usd_per_day(Usd::from_dollars(1_000));
    let limiter = builder().provider(profile).quota("account", budget);
    let limiter = limiter.build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).prices(prices).scope("account");
    let mut client = client_returning(&layer, || Frames::default().pause().into_response());
    let request = Request::post(path).body(body.to_owned()).unwrap();
    let sent = client.ready().await.unwrap().call(request).await;
    let held = held(&limiter, "account")[0];
    sent.map(|_| held).map_err(|error| error.refused().expect("refused by the limiter").code)
}

/// The least that is reserved for each of these parts, which stand in place of `PART` in a body and hold 10,000 bytes in
/// place of `LONG`.
async fn assert_parts_count(profile: Profile, path: &str, body: &str, parts: &[&str]) {
    let long = "lo ng wo rd ".repeat(834);
    for part in parts {
        let body = body.replace("PART", part).replace("LONG", &long);
        let most = reserved(profile, path, &body, true).await;
        assert!(most.is_ok_and(|most| most >= 10_000), "{path} {part}: {most:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn text_anywhere_in_a_chat_counts_to_its_most() {
    let chat = "/v1/chat/completions";
    let message =
        r#"{"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}, PART]}"#;
    assert_parts_count(OPENAI, chat, message, &[
        r#"{"role": "user", "content": [{"type": "text", "text": "LONG"}]}"#,
        r#"{"role": "tool", "tool_call_id": "c", "content": "LONG"}"#,
        r#"{"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "LONG"}}]}"#,
        r#"{"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": "f", "input": "LONG"}}]}"#,
        r#"{"role": "assistant", "function_call": {"name": "f", "arguments": "LONG"}}"#,
        r#"{"role": "assistant", "unheard_of": {"LONG": 1}}"#,
    ])
    .await;
    let field =
        r#"{"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}], PART}"#;
    assert_parts_count(OPENAI, chat, field, &[
        r#""tools": [{"type": "custom", "custom": {"name": "f", "description": "LONG"}}]"#,
        r#""functions": [{"name": "f", "description": "LONG"}]"#,
        r#""response_format": {"type": "json_schema", "json_schema": {"schema": {"description": "LONG"}}}"#,
        r#""prediction": {"type": "content", "content": "LONG"}"#,
    ])
    .await;
    let documents = [
        r#""documents": [{"id": "1", "data": {"text": "LONG"}}]"#,
        r#""documents": ["LONG"]"#,
        r#""tool_results": [{"outputs": [{"a": "LONG"}]}]"#,
    ];
    assert_parts_count(COHERE, "/v2/chat", field, &documents).await;
    let snippets =
        r#"{"model": "m", "max_tokens": 1, "message": "Hi", "documents": [{"snippet": "LONG"}]}"#;
    assert_parts_count(COHERE, "/v1/chat", snippets, &[""]).await;
    let result =
        r#"{"role": "tool", "content": [{"type": "document", "document": {"data": "LONG"}}]}"#;
    assert_parts_count(COHERE, "/v2/chat", message, &[result]).await;
    let prompt = r#"{"model": "m", "max_tokens": 1, "prompt": "Hi", PART}"#;
    assert_parts_count(OPENAI, "/v1/completions", prompt, &[r#""suffix": "LONG""#]).await;
}

#[tokio::test(start_paused = true)]
async fn text_anywhere_in_items_counts_to_its_most() {
    let item = r#"{"model": "m", "max_output_tokens": 1, "input": [{"role": "user", "content": "Hi"}, PART]}"#;
    assert_parts_count(OPENAI, "/v1/responses", item, &[
        r#"{"role": "user", "content": [{"type": "input_text", "text": "LONG"}]}"#,
        r#"{"type": "function_call", "call_id": "c", "name": "f", "arguments": "LONG"}"#,
        r#"{"type": "function_call_output", "output": [{"type": "input_text", "text": "LONG"}]}"#,
        r#"{"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "LONG"}"#,
        r#"{"type": "local_shell_call", "action": {"type": "exec", "command": ["sh", "LONG"]}}"#,
        r#"{"type": "shell_call_output", "output": [{"stdout": "LONG", "stderr": ""}]}"#,
        r#"{"type": "apply_patch_call", "operation": {"type": "create_file", "diff": "LONG"}}"#,
        r#"{"type": "code_interpreter_call", "id": "c", "code": "LONG"}"#,
        r#"{"type": "code_interpreter_call", "id": "c", "outputs": [{"type": "logs", "logs": "LONG"}]}"#,
        r#"{"type": "file_search_call", "id": "c", "results": [{"text": "LONG"}]}"#,
        r#"{"type": "mcp_call", "id": "c", "name": "f", "arguments": "{}", "output": "LONG"}"#,
        r#"{"type": "mcp_list_tools", "tools": [{"name": "f", "description": "LONG"}]}"#,
        r#"{"type": "reasoning", "content": [{"type": "reasoning_text", "text": "LONG"}]}"#,
        r#"{"type": "compaction", "id": "c", "encrypted_content": "LONG"}"#,
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn text_anywhere_in_blocks_counts_to_its_most() {
    let block =
        r#"{"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [PART]}]}"#;
    assert_parts_count(ANTHROPIC, "/v1/messages", block, &[
        r#"{"type": "tool_use", "id": "t", "name": "f", "input": {"a": "LONG"}}"#,
        r#"{"type": "thinking", "thinking": "LONG", "signature": "s"}"#,
        r#"{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "LONG"}}"#,
        r#"{"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "LONG"}]}}"#,
        r#"{"type": "document", "context": "LONG", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}"#,
        r#"{"type": "document", "source": {"type": "text", "data": "LONG"}}"#,
        r#"{"type": "search_result", "source": "s", "title": "LONG", "content": [{"type": "text", "text": "x"}]}"#,
        r#"{"type": "web_search_tool_result", "content": [{"type": "web_search_result", "encrypted_content": "LONG"}]}"#,
        r#"{"type": "bash_code_execution_tool_result", "content": {"stdout": "LONG", "stderr": ""}}"#,
    ])
    .await;
    let part = r#"{"generationConfig": {"maxOutputTokens": 1}, "contents": [{"role": "user", "parts": [PART]}]}"#;
    assert_parts_count(
        GEMINI,
        "/v1beta/models/m:generateContent",
        part,
        &[
            r#"{"text": "LONG"}"#,
            r#"{"functionCall": {"name": "f", "args": {"a": "LONG"}}}"#,
            r#"{"functionResponse": {"name": "f", "response": {"a": "LONG"}}}"#,
            r#"{"executableCode": {"language": "PYTHON", "code": "LONG"}}"#,
            r#"{"codeExecutionResult": {"outcome": "OK", "output": "LONG"}}"#,
            r#"{"inlineData": {"mimeType": "text/plain", "data": "LONG"}}"#,
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn data_of_media_counts_as_media() {
    let data = "iVBORw0KGgoAAAANSUhEUgAABAAAAAQACAYAAAB".to_owned() + &"iVBO".repeat(50_000);
    let message =
        r#"{"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [PART]}]}"#;
    for (profile, path, part) in [
        (
            OPENAI,
            "/v1/chat/completions",
            r#"{"type": "image_url", "image_url": {"url": "data:image/png;base64,DATA"}}"#,
        ),
        (
            OPENAI,
            "/v1/chat/completions",
            r#"{"type": "input_audio", "input_audio": {"data": "DATA", "format": "wav"}}"#,
        ),
        (
            ANTHROPIC,
            "/v1/messages",
            r#"{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "DATA"}}"#,
        ),
        (
            ANTHROPIC,
            "/v1/messages",
            r#"{"type": "document", "source": {"data": "DATA", "media_type": "application/pdf"}}"#,
        ),
    ] {
        let body = message.replace("PART", part).replace("DATA", &data);
        let most = reserved(profile, path, &body, true).await;
        assert!(most.is_ok_and(|most| most < 20_000), "{path} {part}: {most:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn item_by_id_is_reserved_up_to_the_context() {
    let item = r#"{"model": "MODEL", "max_output_tokens": 1, "input": [{"role": "user", "content": "Hi"}, ITEM]}"#;
    for (item_of, is_kept) in [
        (r#"{"type": "item_reference", "id": "msg_1"}"#, true),
        (r#"{"id": "msg_1"}"#, true),
        (r#"{"id": "msg_1", "type": null}"#, true),
        (r#"{"id": "msg_1", "role": "assistant", "content": "Hi"}"#, false),
        (r#"{"id": "fc_1", "type": "function_call", "name": "f", "arguments": "{}"}"#, false),
    ] {
        for model in ["m", "gpt-4o"] {
            let body = item.replace("ITEM", item_of).replace("MODEL", model);
            let most = reserved(OPENAI, "/v1/responses", &body, true).await.unwrap();
            assert_eq!(most == CONTEXT, is_kept, "{model} {item_of}: {most}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn output_in_any_form_counts_to_its_most() {
    let chat = "/v1/chat/completions";
    let and = |fields: &str| {
        format!(r#"{{"model": "m", "messages": [{{"role": "user", "content": "Hi"}}], {fields}}}"#)
    };
    let generate = "/v1beta/models/m:generateContent";
    let generated =
        |fields: &str| format!(r#"{{"contents": [{{"parts": [{{"text": "Hi"}}]}}], {fields}}}"#);
    let completions = "/v1/completions";
    let prompt = |fields: &str| format!(r#"{{"model": "m", {fields}}}"#);
    for (profile, path, body, most) in [
        (OPENAI, chat, and(r#""max_tokens": 1, "max_completion_tokens": 5000"#), 5_000),
        (OPENAI, chat, and(r#""max_tokens": 5000, "max_tokens": 1"#), 5_000),
        (OPENAI, chat, and(r#""max_tokens": 5e3"#), 5_000),
        (OPENAI, chat, and(r#""max_tokens": 1000, "n": "5""#), 5_000),
        (OPENAI, chat, and(r#""n": 3"#), 300_000),
        (OPENAI, chat, and(r#""max_tokens": 1000, "\u006e": 5"#), 5_000),
        (OPENAI, completions, prompt(r#""prompt": "Hi", "max_tokens": 1000, "best_of": 5"#), 5_000),
        (OPENAI, completions, prompt(r#""prompt": ["a", "b", "c"], "max_tokens": 1000"#), 3_000),
        (OPENAI, completions, prompt(r#""prompt": ["a", "b", "c"]"#), 300_000),
        (OPENAI, completions, prompt(r#""prompt": [[1], [2, 3]], "max_tokens": 1000"#), 2_000),
        (OPENAI, completions, prompt(r#""prompt": [1, 2, 3], "max_tokens": 1000"#), 1_000),
        (OPENAI, completions, prompt(r#""prompt": ["a", "b"], "max_tokens": 9, "n": 3"#), 54),
        (OPENAI, completions, prompt(r#""prompt": "a", "suffix": "b", "max_tokens": 9"#), 9),
        (
            GEMINI,
            generate,
            generated(r#""generationConfig": {"maxOutputTokens": 9, "candidateCount": 5}"#),
            45,
        ),
        (
            GEMINI,
            generate,
            generated(r#""generation_config": {"max_output_tokens": 9, "candidate_count": 5}"#),
            45,
        ),
    ] {
        assert_eq!(reserved(profile, path, &body, false).await, Ok(most), "{path} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn fallback_models_count_at_the_dearest_price() {
    let body = |models: &str| {
        format!(
            r#"{{"model": "m", "models": {models}, "max_tokens": 5000, "messages": [{{"role": "user", "content": "Hi"}}]}}"#
        )
    };
    for (models, most) in [
        (r#"["gpt-4o"]"#, Ok(5_000)),
        (r#"["gpt-4o", "house-model"]"#, Err(Code::UnknownPrice)),
        (r#"[{"id": "dear"}]"#, Err(Code::UnknownPrice)),
        ("null", Ok(5_000)),
        ("[]", Ok(5_000)),
    ] {
        let path = "/api/v1/chat/completions";
        assert_eq!(reserved(OPENROUTER, path, &body(models), false).await, most, "{models}");
    }
    for models in [r#"["dear"]"#, r#"["gpt-4o", "dear", "m"]"#] {
        let most = reserved(OPENROUTER, "/api/v1/chat/completions", &body(models), false).await;
        assert!(most.is_ok_and(|most| most >= 250_000), "{models}: {most:?}");
    }
}
