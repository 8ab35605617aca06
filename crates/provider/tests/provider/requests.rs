//! Estimates read from requests.

use paceline_limiter::quota::{Algorithm, Cost, Dimension, SettleAt, Usage};
use paceline_provider::{
    ANTHROPIC, COMPATIBLE, COMPATIBLE_USAGE, Estimate, GEMINI, OPENAI, Profile,
};

#[test]
fn chat_is_charged_by_bytes_messages_and_max_tokens() {
    for (body, tokens) in [
        (r#"{"messages":[{"role":"user","content":"12345678"}]}"#, 2 + 1 + 1),
        (r#"{"messages":[{"role":"user","content":"123456789"}],"max_tokens":50}"#, 3 + 1 + 1 + 50),
        (r#"{"messages":[{"content":"1234"}],"n":3,"max_completion_tokens":10}"#, 1 + 1 + 1 + 30),
        (r#"{"messages":[{"content":"äöüß"},{"content":"\u00e4\ud83d\ude00"}]}"#, 4 + 2 + 1),
        (
            r#"{"messages":[{"content":[{"type":"text","text":"1234"},{"type":"image_url","image_url":{"url":"data:xxxxxxxxxxxxxxx"}}]}]}"#,
            1 + 1 + 1 + 765,
        ),
        (
            r#"{"messages":[{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"1234"}]}"#,
            1 + 2 + 1,
        ),
    ] {
        let estimate = chat(OPENAI, body);
        assert_eq!(estimate.cost.amount(&Dimension::Tokens), tokens, "{body}");
        assert!(estimate.exact, "{body}");
    }
}

#[test]
fn prompts_and_embeddings_are_charged_by_bytes_or_token_ids() {
    for (path, body, tokens) in [
        ("/v1/completions", r#"{"prompt":"12345","max_tokens":7}"#, 2 + 7),
        (
            "/v1/completions?x=/chat/completions",
            r#"{"prompt":["1234","5678"],"best_of":2,"max_tokens":7}"#,
            2 + 14,
        ),
        ("/v1/embeddings/", r#"{"input":["123","456"]}"#, 2),
        ("/v1/embeddings", r#"{"input":[[1,2,3],[4]]}"#, 4),
        ("https://api.openai.com/v1/moderations", r#"{"input":"12345678"}"#, 2),
    ] {
        let estimate = OPENAI.read_request(path, body.as_bytes());
        assert_eq!(estimate.cost.amount(&Dimension::Tokens), tokens, "{body}");
    }
}

/// A recorded request, which was charged 289 tokens.
#[test]
fn function_in_responses_has_about_its_recorded_charge() {
    let body = r#"{"input": "What's the weather in Seattle right now?", "model": "gpt-4o-mini",
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tools": [{"type": "function", "name": "get_current_weather",
            "description": "Get the current weather in a given location", "strict": true,
            "parameters": {"type": "object", "required": ["location"], "additionalProperties": false,
                "properties": {"location": {"type": "string",
                    "description": "The city and state, e.g. Boston, MA"}}}}]}"#;
    let charge = OPENAI.read_request("/v1/responses", body.as_bytes()).cost;
    assert!(charge.amount(&Dimension::Tokens).abs_diff(289) <= 5, "{charge:?}");
}

#[test]
fn max_output_tokens_of_responses_api_is_not_charged() {
    let body = |bound: &str| format!(r#"{{"input":"What is AI?","model":"gpt-4.1"{bound}}}"#);
    let read = |body: String| OPENAI.read_request("/v1/responses", body.as_bytes());
    let (free, bounded) = (read(body("")), read(body(r#","max_output_tokens":1024"#)));
    // Three words and a question mark.
    assert_eq!(free.cost.amount(&Dimension::Tokens), 4 + 4 + 3 + 19);
    assert_eq!(bounded.cost.amount(&Dimension::Tokens), 4 + 4 + 3 + 19);
    assert_eq!((free.max_output, bounded.max_output), (None, Some(1_024)));
}

#[test]
fn input_and_output_are_estimated_separately() {
    let cost = chat(OPENAI, r#"{"messages":[{"content":"12345678"}],"max_tokens":9,"n":2}"#).cost;
    assert_eq!(cost.amount(&Dimension::InputTokens), 2 + 4 + 3);
    assert_eq!(cost.amount(&Dimension::OutputTokens), 18);
    let cost = chat(OPENAI, r#"{"messages":[{"content":"12345678"}]}"#).cost;
    assert_eq!(cost.amount(&Dimension::OutputTokens), 1_024);
    let cost = OPENAI.read_request("/v1/embeddings", br#"{"input":"x"}"#).cost;
    assert_eq!(cost.amount(&Dimension::OutputTokens), 0);
}

#[test]
fn fields_of_wrong_type_or_duplicates_are_tolerated() {
    let body = r#"{"model":"m","model":7,"stream":"yes","stream":true,"n":-1,"max_tokens":8.0,
                   "max_tokens":null,"tools":{"a":1},"messages":[3,"four",{"content":{"text":"1234"}}]}"#;
    let estimate = chat(OPENAI, body);
    assert_eq!(estimate.model.as_deref(), Some("m"));
    assert!(estimate.stream && estimate.exact);
    assert_eq!(estimate.max_output, Some(8));
}

#[test]
fn numbers_in_strings_are_read_as_numbers() {
    let body = r#"{"messages":[{"content":"1234"}],"max_tokens":"50","n":" 2 "}"#;
    assert_eq!(chat(OPENAI, body).max_output, Some(100));
    let body = r#"{"messages":[],"max_tokens":"fifty"}"#;
    assert_eq!(chat(OPENAI, body).max_output, None);
}

#[test]
fn nesting_of_any_depth_is_accepted() {
    for (open, close) in [("[", "]"), (r#"{"content":"#, "}"), (r#"{"x":"#, "}")] {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        for key in ["messages", "tools", "response_format", "model", "x"] {
            let estimate = chat(OPENAI, &format!(r#"{{"{key}":{open}0{close}}}"#));
            assert_eq!(estimate.model, None);
        }
    }
}

#[test]
fn huge_numbers_saturate() {
    let body = r#"{"messages":[],"max_tokens":18446744073709551615,"n":18446744073709551615}"#;
    for profile in [OPENAI, COMPATIBLE] {
        assert_eq!(chat(profile, body).cost.amount(&Dimension::Tokens), u64::MAX);
    }
}

#[test]
fn unreadable_body_is_charged_by_size() {
    for body in ["{\"messages\": [", "not json at all.", "[{\"model\": \"m\"}]", "{} {}"] {
        let estimate = chat(OPENAI, body);
        let tokens = (body.len() as u64).div_ceil(4);
        assert_eq!(estimate.cost.amount(&Dimension::Tokens), tokens, "{body}");
        assert!(!estimate.exact, "{body}");
    }
    let upload = chat(OPENAI, "--boundary\r\ncontent-disposition: form-data; name=\"file\"");
    assert_eq!(upload.cost.amount(&Dimension::Tokens), 0);
    assert!(!upload.exact);
}

#[test]
fn model_is_read_from_otherwise_unreadable_body() {
    for body in [
        r#"{"model":"m","messages":[{"role":"user","content":"hel"#,
        "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n",
        "--b\nContent-Type: text/plain\ncontent-disposition: form-data; name=model\n\nm\n--b--",
    ] {
        let estimate = chat(OPENAI, body);
        assert_eq!(estimate.model.as_deref(), Some("m"), "{body}");
        assert!(!estimate.exact, "{body}");
    }
    // A byte order mark, and an unpaired surrogate of a text cut inside an emoji.
    for body in ["\u{feff}{\"model\":\"m\"}", r#"{"model":"m","messages":[{"content":"a\ud83d"}]}"#]
    {
        let read = chat(OPENAI, body);
        assert_eq!((read.model.as_deref(), read.exact), (Some("m"), true), "{body}");
    }
    for body in [
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"model\"\r\n\r\nm\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"model\"",
        "--",
    ] {
        assert_eq!(chat(OPENAI, body).model, None, "{body}");
    }
}

#[test]
fn request_without_body_costs_one_request_and_no_tokens() {
    let estimate = OPENAI.read_request("/v1/models", b"");
    assert!(estimate.exact);
    assert_eq!(estimate.cost, Cost::new());
}

#[test]
fn compatible_usage_provider_settles_by_usage_at_end() {
    let body = r#"{"messages":[{"content":"123456"}],"max_tokens":100}"#;
    let estimate = chat(COMPATIBLE_USAGE, body);
    let reserved = estimate.cost;
    assert_eq!((reserved.amount(&Dimension::Tokens), estimate.terms.floor), (2 + 8 + 16 + 100, 0));
    let usage = Usage { input: 9, output: 20, cache_read: 4, cache_write: 0, long_cache_write: 0 };
    let charge = COMPATIBLE_USAGE.charge(&reserved, &usage);
    assert_eq!(charge.amount(&Dimension::Tokens), 29);
    assert_eq!(charge.amount(&Dimension::InputTokens), 9);
    assert_eq!(charge.amount(&Dimension::OutputTokens), 20);
    assert_eq!(COMPATIBLE.settles(&Dimension::Tokens), SettleAt::End);
    assert_eq!(COMPATIBLE.settles(&Dimension::Requests), SettleAt::Send);
    assert_eq!(COMPATIBLE.algorithm(), Algorithm::SlidingWindow);
}

#[test]
fn unknown_server_charge_is_at_least_openai_charge() {
    let body = r#"{"messages":[{"content":"123456"}],"max_tokens":100}"#;
    let estimate = chat(COMPATIBLE, body);
    assert_eq!(estimate.terms.floor, chat(OPENAI, body).cost.amount(&Dimension::Tokens));
    assert!(estimate.cost.amount(&Dimension::Tokens) >= estimate.terms.floor);
    assert_eq!(chat(OPENAI, body).terms.floor, 2 + 1 + 1 + 100);
}

#[test]
fn dated_snapshots_match_quota_of_undated_model() {
    for (model, tpm) in [
        ("gpt-4o", 30_000),
        ("gpt-4o-2024-08-06", 30_000),
        ("gpt-4o-mini", 200_000),
        ("gpt-4o-mini-2024-07-18", 200_000),
        ("o1-2024-12-17", 30_000),
        ("gpt-5-mini", 500_000),
        ("gpt-5.4-nano-2026-03-17", 200_000),
        ("gpt-6-astra", 500_000),
    ] {
        let found: Vec<_> = OPENAI
            .quotas()
            .iter()
            .filter(|default| wildmatch::WildMatch::new(default.pattern).matches(model))
            .collect();
        assert_eq!(found.len(), 1, "{model}: {found:?}");
        assert!(!found[0].source.is_empty());
        let quota = found[0].quota().unwrap();
        let limits: Vec<_> = quota.limits().iter().map(|limit| limit.amount()).collect();
        assert_eq!(limits[..2], [500, tpm], "{model}");
    }
    assert!(COMPATIBLE.quotas().is_empty());
}

#[test]
fn profiles_are_found_by_name() {
    assert_eq!(Profile::named("OpenAI"), Some(OPENAI));
    assert_eq!(Profile::named("compatible").map(|profile| profile.name()), Some("compatible"));
    assert_eq!(Profile::named("unknown"), None);
    assert_eq!(format!("{OPENAI:?}"), "Profile(\"openai\")");
}

#[test]
fn token_counts_cost_nothing() {
    let chat = r#"{"model":"m","messages":[{"role":"user","content":"12345678"}],"contents":[]}"#;
    for path in [
        "/v1/messages/count_tokens",
        "/v1beta/models/m:countTokens",
        "/v1/projects/p/locations/l/publishers/google/models/m:computeTokens",
        "/v1/responses/input_tokens?x=1",
    ] {
        for profile in [OPENAI, ANTHROPIC, GEMINI] {
            let estimate = profile.read_request(path, chat.as_bytes());
            assert_eq!(estimate.model.as_deref(), Some("m"), "{path}");
            for dimension in [
                Dimension::Requests,
                Dimension::Tokens,
                Dimension::InputTokens,
                Dimension::OutputTokens,
            ] {
                assert_eq!(estimate.cost.amount(&dimension), 0, "{path}: {dimension}");
            }
        }
    }
    let estimate = OPENAI.read_request("/v1/chat/completions", chat.as_bytes());
    assert_eq!(estimate.cost.amount(&Dimension::Requests), 1);
}

#[test]
fn embeddings_of_a_list_are_so_many_requests_of_gemini() {
    let one = r#"{"model":"models/e","content":{"parts":[{"text":"12345678"}]}}"#;
    let requests = |path: &str, body: &str| {
        GEMINI.read_request(path, body.as_bytes()).cost.amount(&Dimension::Requests)
    };
    let list = format!(r#"{{"requests":[{one},{one},{one}]}}"#);
    assert_eq!(requests("/v1beta/models/e:batchEmbedContents", &list), 3);
    assert_eq!(requests("/v1beta/models/e:batchEmbedContents", r#"{"requests":[]}"#), 1);
    assert_eq!(requests("/v1beta/models/e:embedContent", one), 1);
}

fn chat(profile: Profile, body: &str) -> Estimate {
    profile.read_request("/v1/chat/completions", body.as_bytes())
}
