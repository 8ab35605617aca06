//! Google's Gemini and Vertex: the input alone is counted.

use super::request::{Request, Weights};
use super::reserve::{Reserved, at_end, usage_of_input};
use super::rules::Rules;
use super::{Profile, compatible, media, openai};
use crate::quota::Algorithm;

/// The Gemini API, `generativelanguage.googleapis.com`: native (`models/NAME:generateContent`,
/// streams, embeddings) and OpenAI-compatible (`/v1beta/openai/...`).
///
/// - **Charge** (`Tokens`, the TPM limit): the input alone, what tools added to it included; settled
///   at the end. Failed requests count. Source: Google's page on rate limits.
/// - **Limits**: token buckets per minute; requests per day until midnight in
///   `America/Los_Angeles`.
/// - **Quotas**: tier 1 of February 2026.
pub const GEMINI: Profile = Profile::new(&Rules {
    name: "gemini",
    urls: &[
        "generativelanguage.googleapis.com",
        "*/*:generateContent",
        "*/*:streamGenerateContent",
        "*/*:embedContent",
        "*/*:batchEmbedContents",
        "*/*:countTokens",
    ],
    ..RULES
});

/// Gemini on Vertex AI, `*aiplatform.googleapis.com`: the same charge; its quotas differ by project
/// and region, and newer models have none but what the region has left. Native (`:generateContent`,
/// `:predict` of embeddings) and OpenAI-compatible (`/endpoints/openapi/...`).
///
/// - **Charge**, **Limits**: as [`GEMINI`]. Its embeddings state their tokens only within a list, so
///   that their estimate stays. **Quotas**: none.
pub const VERTEX: Profile = Profile::new(&Rules {
    name: "vertex",
    urls: &["*aiplatform.googleapis.com", "*/publishers/google/*", "*/endpoints/openapi/*"],
    ..RULES
});

const RULES: Rules = Rules {
    algorithm: Algorithm::TokenBucket,
    settles: at_end,
    reserve: |request: &Request| Reserved::by_input(request, request.prompt_tokens(&WEIGHTS)),
    charge: usage_of_input,
    ..compatible::RULES
};

/// Recorded: nothing around messages, and some twelve tokens a call.
const WEIGHTS: Weights = Weights {
    item: 0,
    answer: 1,
    call: 12,
    schema: 6,
    functions: 0,
    search: 0,
    built_in: 300,
    medium: media::gemini,
    ..openai::WEIGHTS
};
