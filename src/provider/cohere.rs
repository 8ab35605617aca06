//! Cohere, both versions of its API.

use super::request::{Request, Weights};
use super::reserve::Reserved;
use super::rules::Rules;
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
    ..compatible::RULES
});

/// Recorded: some 60 tokens of Cohere's own around every chat, and 900 to 1,400 with tools.
const WEIGHTS: Weights = Weights { answer: 60, functions: 1_000, schema: 6, ..openai::WEIGHTS };
