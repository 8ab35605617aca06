//! Google's Gemini and Vertex: the input alone is counted.

use super::profile::{Rules, until_midnight};
use super::request::{Request, Weights};
use super::reserve::{Reserved, at_end, usage_of_input};
use super::scanner::{Count, Counts, Field, Wanted};
use super::{DefaultQuota, Profile, compatible, media, openai, usage};
use crate::quota::{Algorithm, Quota, Usage};

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
    quotas: QUOTAS,
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
    algorithm: Algorithm::TOKEN_BUCKET,
    settles: at_end,
    reserve: |request: &Request| Reserved::by_input(request, request.prompt_tokens(&WEIGHTS)),
    charge: usage_of_input,
    wanted: &Wanted::new(FIELDS),
    usage,
    ..compatible::RULES
};

/// The prompt holds what was cached; what tools added to it and what was thought are stated apart.
/// Every chunk of a stream counts what came so far.
const FIELDS: &[Field] = &[
    Field::count(&["usageMetadata", "promptTokenCount"], Count::Input),
    Field::count(&["usageMetadata", "candidatesTokenCount"], Count::OutputSoFar),
    Field::count(&["usageMetadata", "thoughtsTokenCount"], Count::Thoughts),
    Field::count(&["usageMetadata", "toolUsePromptTokenCount"], Count::ToolPrompt),
    Field::count(&["usageMetadata", "totalTokenCount"], Count::Total),
    Field::count(&["usageMetadata", "cachedContentTokenCount"], Count::CacheRead),
    Field::count(&["usage", "prompt_tokens"], Count::Input),
    Field::count(&["usage", "completion_tokens"], Count::Output),
    Field::count(&["usage", "prompt_tokens_details", "cached_tokens"], Count::CacheRead),
];

/// The last chunk of a stream may state the total and leave parts of it out that earlier ones stated
/// with other values: the output is what the total leaves.
fn usage(counts: &Counts) -> Option<Usage> {
    let usage = usage::cache_within(counts)?;
    let output = counts.of(Count::Total).and_then(|total| total.checked_sub(usage.input));
    Some(Usage { output: output.unwrap_or(usage.output), ..usage })
}

/// Of tier 1, for the models that are limited per day.
fn daily() -> Quota {
    until_midnight(per_minute(), 1_000, "America/Los_Angeles")
}

fn per_minute() -> Quota {
    Quota::new().rpm(150).tpm(1_000_000)
}

const fn model(pattern: &'static str, build: fn() -> Quota) -> DefaultQuota {
    DefaultQuota { pattern, as_of: "2026-02", build }
}

const QUOTAS: &[DefaultQuota] = &[
    model("gemini-3-pro-preview*", daily),
    model("gemini-3-flash-preview*", daily),
    model("gemini-2.5-pro", daily),
    // Not `gemini-2.5-pro-preview-tts`, which speaks.
    model("gemini-2.5-pro-preview-??-??", daily),
    model("gemini-2.5-pro-exp-??-??", daily),
    model("gemini-2.0-flash", per_minute),
    model("gemini-2.0-flash-00?", per_minute),
    model("gemini-2.0-flash-exp", per_minute),
    model("gemini-2.0-flash-lite*", Quota::new),
];

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
