//! Estimated charges of OpenAI's Responses, by recorded prompts.

use std::collections::BTreeSet;

use tollgate::provider::OPENAI;
use tollgate::quota::Dimension;

use super::recordings::{Recorded, entries};

/// Parts of prompts that have no documented number of tokens, or aren't in the request.
const UNKNOWN: &[&str] =
    &["image_url", "previous_response_id", "conversation", "web_search", "input_image", "\"file"];

/// Tools that are loaded later. No charge of a request with them is recorded.
const DEFERRED: &[&str] = &["tool_search", "additional_tools", "defer_loading"];

/// Every other recorded prompt was used to fit the estimate. The charge is that of its input tokens: + 19, or + 217
/// with functions.
///
/// Of the 48 misses in the unseen half, 19 are prompts with deferred tools: with a tool search they cost 64 to 199
/// tokens more, and a search that OpenAI runs itself is a second prompt, of which the request says nothing (398 to
/// 832 more). Four are chats with functions of GPT-5 mini, which cost 81 to 85 tokens more than its Responses, whose
/// five recorded prompts are all exact: as Responses they would not be charged that much. Two call an MCP server,
/// whose tools aren't in the request. The other 23 are 4 to 81 tokens off, two of them more (208 and 318).
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
    assert!(unseen.1 >= 80 && reaches(unseen, 50) && reaches(plain, 60), "{unseen:?} {plain:?}");
}
