//! Google's Gemini and Vertex: the token limit counts the input alone.

use paceline_limiter::quota::Algorithm;

use crate::Profile;
use crate::api::Api;
use crate::charge::Charge;
use crate::count_tokens::format::CountTokensFormat;
use crate::error::ErrorRules;
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;

/// The Gemini API, `generativelanguage.googleapis.com`: native (`models/NAME:generateContent`,
/// streams, embeddings) and OpenAI-compatible (`/v1beta/openai/...`).
///
/// - **Charge** (`Tokens`, the TPM limit): the input alone, including the tokens that tools added;
///   settled at the end. Source: Google's page on rate limits.
/// - **Failures**: "If your request fails with a 400 or 500 error, you won't be charged for the tokens used. However,
///   the request will still count against your quota." (ai.google.dev/gemini-api/docs/billing, read in November 2026).
///   A 429 or 503 is taken for such a failure.
/// - **Limits**: token buckets per minute; requests per day until midnight in
///   `America/Los_Angeles`.
/// - **Quotas**: tier 1, as AI Studio showed it to an account; Google's documentation has no numbers.
pub const GEMINI: Profile = Profile::new(
    &RULES
        .urls(&[
            "generativelanguage.googleapis.com",
            "*/*:generateContent",
            "*/*:streamGenerateContent",
            "*/*:embedContent",
            "*/*:batchEmbedContents",
            "*/*:countTokens",
        ])
        .errors(ERRORS.counted_statuses(&[400, 429, 503]))
        .count_tokens(CountTokensFormat::Gemini)
        .api(
            Api::bearer(&["GEMINI_API_KEY", "GOOGLE_API_KEY"])
                .origin("https://generativelanguage.googleapis.com")
                .endpoint("/v1beta/models/{model}:generateContent")
                .openai_path("/v1beta/openai")
                .key_header("x-goog-api-key"),
        ),
);

/// Gemini on Vertex AI, `*aiplatform.googleapis.com`: the same charge; its quotas differ by project
/// and region, and newer models share the capacity of the region without a quota. Native
/// (`:generateContent`, `:predict` for embeddings) and OpenAI-compatible (`/endpoints/openapi/...`).
///
/// - **Charge**, **Limits**: as [`GEMINI`]. Its embeddings state their tokens only within a list, which
///   is not read: their estimate is final. **Quotas**: none.
/// - **Failures**: only responses with status 200 are billed (cloud.google.com/vertex-ai/generative-ai/pricing, read in
///   November 2026).
pub const VERTEX: Profile = Profile::new(
    &Rules { name: "vertex", ..RULES }
        .urls(&["*aiplatform.googleapis.com", "*/publishers/google/*", "*/endpoints/openapi/*"])
        .errors(ERRORS)
        .count_tokens(CountTokensFormat::Vertex)
        .api(
            Api::bearer(&[])
                .endpoint("/publishers/google/models/{model}:generateContent")
                .openai_path("/endpoints/openapi")
                .advice(VERTEX_ADVICE),
        ),
);

const ERRORS: ErrorRules =
    ErrorRules::new().unbilled_failures().days_reset_in("America/Los_Angeles");

const RULES: Rules = Rules::built_in("gemini")
    .algorithm(Algorithm::TokenBucket)
    .weights(PromptWeights::GEMINI)
    .charge(Charge::by_input());

/// The address and credentials of Vertex.
pub(super) const VERTEX_ADVICE: &str = "its base URL is \
    https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION; it takes access tokens \
    that expire after an hour: put the output of `gcloud auth print-access-token` into a variable and \
    name that with --api-key-env";
