//! Cohere, both versions of its API.

use super::profile::Rules;
use super::request::{Request, Weights};
use super::reserve::Reserved;
use super::scanner::{Count, Field, Wanted};
use super::{Profile, compatible, openai};

/// Cohere, `api.cohere.com` and `api.cohere.ai`: v1, v2 and the compatible API.
///
/// - **Charge**: calls a minute and a month are limited, not tokens; `Tokens` are the usage, as it was
///   processed (`tokens`), not as it is billed. Source: Cohere's page on rate limits.
/// - **Limits**: sliding windows; no headers tell of them.
/// - **Quotas**: none.
pub const COHERE: Profile = Profile::new(&Rules {
    name: "cohere",
    urls: &["api.cohere.com", "api.cohere.ai"],
    reserve: |request: &Request| Reserved::by_usage(request, request.prompt_tokens(&WEIGHTS)),
    wanted: &Wanted::new(FIELDS),
    ..compatible::RULES
});

/// What was processed (`tokens`), not what is billed, which leaves out what Cohere itself added.
const FIELDS: &[Field] = &[
    // v2, whole and `message-end` of its stream.
    Field::count(&["usage", "tokens", "input_tokens"], Count::Input),
    Field::count(&["usage", "tokens", "output_tokens"], Count::Output),
    Field::count(&["usage", "cached_tokens"], Count::CacheRead),
    Field::count(&["delta", "usage", "tokens", "input_tokens"], Count::Input),
    Field::count(&["delta", "usage", "tokens", "output_tokens"], Count::Output),
    Field::count(&["delta", "usage", "cached_tokens"], Count::CacheRead),
    // v1, whole and `stream-end` of its stream.
    Field::count(&["meta", "tokens", "input_tokens"], Count::Input),
    Field::count(&["meta", "tokens", "output_tokens"], Count::Output),
    Field::count(&["meta", "billed_units", "input_tokens"], Count::OtherInput),
    Field::count(&["meta", "billed_units", "output_tokens"], Count::OtherOutput),
    Field::count(&["response", "meta", "tokens", "input_tokens"], Count::Input),
    Field::count(&["response", "meta", "tokens", "output_tokens"], Count::Output),
    Field::count(&["response", "meta", "billed_units", "input_tokens"], Count::OtherInput),
    Field::count(&["response", "meta", "billed_units", "output_tokens"], Count::OtherOutput),
    // The compatible API.
    Field::count(&["usage", "prompt_tokens"], Count::Input),
    Field::count(&["usage", "completion_tokens"], Count::Output),
];

/// Recorded: some 60 tokens of Cohere's own around every chat, and 900 to 1,400 with tools.
const WEIGHTS: Weights = Weights { answer: 60, functions: 1_000, schema: 6, ..openai::WEIGHTS };
