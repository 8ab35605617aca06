//! Estimated charges of OpenAI's Responses, by recorded prompts.

use std::collections::BTreeSet;

use paceline_limiter::quota::Dimension;
use paceline_provider::OPENAI;

use super::recordings::{Recorded, entries};

/// Returns the charge of a request to Responses with this input and these tools, as lists of JSON.
fn charge(input: &str, tools: &str) -> u64 {
    let body = format!(r#"{{"model": "gpt-5.4", "input": [{input}], "tools": [{tools}]}}"#);
    OPENAI.read_request("/v1/responses", body.as_bytes()).cost.amount(&Dimension::Tokens)
}

/// Parts of prompts that have no documented number of tokens, or aren't in the request.
const UNKNOWN: &[&str] =
    &["image_url", "previous_response_id", "conversation", "web_search", "input_image", "\"file"];

/// Tools that are loaded in the course of the conversation. No charge of a request with them is recorded.
const DEFERRED: &[&str] = &["tool_search", "additional_tools", "defer_loading"];

/// Every other recorded prompt was used to fit the estimate. The charge is that of its input tokens: + 19, or + 217
/// with functions.
///
/// Of the 36 misses in the unseen half, 12 are prompts with deferred tools: five cost 150 tokens more or above, as a
/// search that OpenAI runs itself is a second prompt, of which the request says nothing; the others are 11 to 27 off.
/// Four are chats with functions of GPT-5 mini, which cost 80 tokens more than its Responses: as Responses they would
/// not be charged that much. Two call an MCP server, whose tools aren't in the request. The other 18 are 3 to 101
/// tokens off, one of them more.
#[test]
fn most_unseen_prompts_have_a_charge_within_two_percent() {
    let Some(entries) = entries("openai.har") else { return };
    let mut seen = BTreeSet::new();
    let mut near = [[(0, 0); 2]; 2];
    for entry in &entries {
        let is_known = !UNKNOWN.iter().any(|part| entry.request.contains(part));
        let generates =
            entry.path().ends_with("chat/completions") || entry.path().ends_with("responses");
        let Some(Some(usage)) = entry.usage().filter(|_| is_known && generates) else { continue };
        if !seen.insert((entry.request.clone(), usage.input)) {
            continue;
        }
        let has_functions = entry.request.contains("\"parameters\"");
        let charge = usage.input + if has_functions { 217 } else { 19 };
        let estimate = OPENAI.read_request("/v1/responses", entry.request.as_bytes());
        let error = estimate.cost.amount(&Dimension::Tokens).abs_diff(charge);
        let is_near = error <= 2 || error * 50 <= charge;
        let is_deferred = DEFERRED.iter().any(|part| entry.request.contains(part));
        let all = [false].into_iter().chain((!is_deferred).then_some(true));
        for is_plain in all {
            let (near, of) = &mut near[usize::from(is_plain)][seen.len() % 2];
            (*near, *of) = (*near + usize::from(is_near), *of + 1);
        }
    }
    let [[unseen, fitted], [plain, _]] = near;
    println!(
        "near: {unseen:?} of the unseen half, {fitted:?} of the other; {plain:?} without deferred tools"
    );
    let reaches = |(near, of): (usize, usize), percent| near * 100 >= of * percent;
    assert!(unseen.1 >= 80 && reaches(unseen, 60) && reaches(plain, 70), "{unseen:?} {plain:?}");
}

const QUESTION: &str = r#"{"role": "user", "content": "What is the weather in Paris?"}"#;

const FUNCTION: &str = r#""type": "function", "name": "get_weather", "description": "Get the weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}"#;

#[test]
fn deferred_function_is_charged_without_its_parameters() {
    let deferred = |more: &str| format!(r#"{{{FUNCTION}, "defer_loading": true}} {more}"#);
    let defined = charge(QUESTION, &format!("{{{FUNCTION}}}"));
    let listed = charge(QUESTION, &deferred(""));
    assert!(listed < defined, "{listed} {defined}");
    // The model is told how to search.
    let hosted = charge(QUESTION, &deferred(r#", {"type": "tool_search"}"#));
    let client =
        r#", {"type": "tool_search", "execution": "client", "description": "Find tools."}"#;
    let client = charge(QUESTION, &deferred(client));
    assert!(hosted > listed + 300 && client > listed + 20, "{hosted} {client}");
    // Once the function is loaded, there is nothing to search.
    let loaded = format!(
        r#"{QUESTION}, {{"type": "tool_search_output", "tools": [{{{FUNCTION}, "defer_loading": true}}]}}"#
    );
    let loaded = charge(&loaded, &deferred(r#", {"type": "tool_search"}"#));
    assert!((defined + 80..defined + 110).contains(&loaded), "{loaded} {defined}");
}

#[test]
fn reasoning_is_charged_until_the_next_message_of_the_user() {
    let reasoning =
        format!(r#"{{"type": "reasoning", "encrypted_content": "{}"}}"#, "g".repeat(1_380));
    let before = charge(&format!("{QUESTION}, {QUESTION}"), "");
    assert_eq!(charge(&format!("{QUESTION}, {QUESTION}, {reasoning}"), ""), before + 100);
    assert_eq!(charge(&format!("{QUESTION}, {reasoning}, {QUESTION}"), ""), before);
}
