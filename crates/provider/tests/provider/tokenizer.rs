//! Exact token counts of prompts: `Profile::with_tokenizer`.

use paceline_limiter::quota::Dimension;
use paceline_provider::{ANTHROPIC, COMPATIBLE_USAGE, Estimate, OPENAI, Profile};
use serde_json::{Value, json};

use super::recordings::{Recorded, Recording, entries};

#[test]
fn prompt_tokens_equal_count_of_cookbook() {
    // The example of OpenAI's cookbook, and the count that the API returned.
    let messages = json!([
        {"role": "system", "content": "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},
        {"role": "system", "name": "example_user", "content": "New synergies will help drive top-line growth."},
        {"role": "system", "name": "example_assistant", "content": "Things working well together will increase revenue."},
        {"role": "system", "name": "example_user", "content": "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."},
        {"role": "system", "name": "example_assistant", "content": "Let's talk later when we're less busy about how to do better."},
        {"role": "user", "content": "This late pivot means we don't have time to boil the ocean for the client deliverable."},
    ]);
    for (model, tokens) in [("gpt-3.5-turbo", 129), ("gpt-4", 129), ("gpt-4o-mini", 124)] {
        let body = json!({"model": model, "messages": messages});
        assert_eq!(input(OPENAI.with_tokenizer(), &body), tokens, "{model}");
    }
}

#[test]
fn openai_charge_by_characters_is_unchanged_by_tokenizer() {
    let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "速率限制".repeat(50)}]});
    let (before, after) = (read(OPENAI, &body), read(OPENAI.with_tokenizer(), &body));
    assert_eq!(before.cost.amount(&Dimension::Tokens), after.cost.amount(&Dimension::Tokens));
    assert_eq!(before.terms, after.terms);
    assert_ne!(input(OPENAI, &body), input(OPENAI.with_tokenizer(), &body));
}

#[test]
fn reservation_holds_exact_prompt_where_usage_is_charged() {
    let body = json!({"model": "gpt-4o", "max_tokens": 100,
                      "messages": [{"role": "user", "content": "tiktoken is great!"}]});
    let estimate = read(COMPATIBLE_USAGE.with_tokenizer(), &body);
    assert_eq!(estimate.cost.amount(&Dimension::Tokens), 6 + 4 + 3 + 100);
}

#[test]
fn model_without_vocabulary_is_estimated_as_before() {
    let body = json!({"model": "claude-sonnet-4", "max_tokens": 9,
                      "messages": [{"role": "user", "content": "antidisestablishmentarianism"}]});
    assert_eq!(read(ANTHROPIC, &body), read(ANTHROPIC.with_tokenizer(), &body));
    let body = json!({"messages": [{"role": "user", "content": "no model"}]});
    assert_eq!(read(OPENAI, &body), read(OPENAI.with_tokenizer(), &body));
}

#[test]
fn model_in_path_selects_vocabulary() {
    let body = br#"{"messages": [{"role": "user", "content": "tiktoken is great!"}]}"#;
    let azure = Profile::named("azure").unwrap().with_tokenizer();
    let path = "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21";
    assert_eq!(azure.read_request(path, body).cost.amount(&Dimension::InputTokens), 13);
}

#[test]
fn huge_text_of_one_letter_is_counted_within_1_percent() {
    for (letter, bytes) in [("a", 8), (" ", 128), ("-", 64), ("=", 64), ("\n", 16)] {
        let content = letter.repeat(1 << 20);
        let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": content}]});
        let (tokens, exact) = (input(OPENAI.with_tokenizer(), &body), (1 << 20) / bytes);
        assert!(tokens.abs_diff(exact) * 100 <= exact, "{letter:?}: {tokens} of {exact}");
    }
}

/// Covers chats, completions and embeddings of text alone, in all recordings of OpenAI.
#[test]
fn recorded_text_prompts_are_counted_exactly() {
    let Some(entries) = entries("openai.har") else { return };
    let prompts = entries.iter().filter(|entry| is_text(entry)).filter_map(|entry| {
        let stated = entry.usage()??.input;
        let read = |profile: Profile| {
            let estimate = profile.read_request(entry.path(), entry.request.as_bytes());
            estimate.cost.amount(&Dimension::InputTokens)
        };
        Some((stated, read(OPENAI), read(OPENAI.with_tokenizer())))
    });
    let prompts: Vec<_> = prompts.collect();
    let share = |hits: usize| hits * 100 / prompts.len();
    let before = share(prompts.iter().filter(|(stated, before, _)| stated == before).count());
    let exact = share(prompts.iter().filter(|(stated, _, after)| stated == after).count());
    let near = share(prompts.iter().filter(|(s, _, a)| s.abs_diff(*a) * 100 <= *s).count());
    let of = prompts.len();
    println!("{of} prompts: {exact} % exact, {near} % within 1 %; by characters {before} % exact");
    assert!(of > 70 && exact >= 95 && exact <= near, "{exact} % and {near} % of {of}");
}

fn is_text(entry: &Recording) -> bool {
    let body: Value = serde_json::from_str(&entry.request).unwrap_or_default();
    let more = ["tools", "functions", "response_format"].iter().any(|key| !body[key].is_null());
    let media = ["image_url", "input_audio", "\"file\"", "tool_calls", "function_call"];
    let endpoint = ["completions", "embeddings"].iter().any(|end| entry.path().ends_with(end));
    endpoint && !more && !media.iter().any(|medium| entry.request.contains(medium))
}

fn input(profile: Profile, body: &Value) -> u64 {
    read(profile, body).cost.amount(&Dimension::InputTokens)
}

fn read(profile: Profile, body: &Value) -> Estimate {
    profile.read_request("/v1/chat/completions", body.to_string().as_bytes())
}
