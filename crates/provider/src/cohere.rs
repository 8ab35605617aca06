//! Cohere, both versions of its API.

use crate::Profile;
use crate::api::Api;
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;
use crate::unit::Unit;

/// Cohere, `api.cohere.com` and `api.cohere.ai`: v1, v2 and the compatible API.
///
/// - **Charge**: calls per minute and per month are limited, not tokens; `Tokens` are the processed usage
///   (`tokens`), not the billed one. Source: Cohere's page on rate limits.
/// - **Units**: inputs of embeddings per minute: texts (`inputs`) and images (`images`) apart. Source:
///   docs.cohere.com/docs/rate-limits, read on 2026-11-25.
/// - **Without a model**, chats of version 1 of the API run `command-r-plus-08-2024`; source: its SDKs (2025). Other
///   requests have to name one.
/// - **Limits**: sliding windows; no headers state them.
/// - **Quotas**: those of embeddings with a production key.
pub const COHERE: Profile = Profile::new(
    &Rules::built_in("cohere")
        .urls(&["api.cohere.com", "api.cohere.ai"])
        .weights(WEIGHTS)
        .units(&[Unit::Inputs, Unit::Images])
        .default_models(&[("/v1/chat", "command-r-plus-08-2024")])
        .api(
            Api::bearer(&["CO_API_KEY", "COHERE_API_KEY"])
                .origin("https://api.cohere.com")
                .endpoint("/v2/chat")
                .openai_path("/compatibility/v1"),
        ),
);

/// Recorded: Cohere adds about 60 tokens to every chat, and 900 to 1,400 with tools.
const WEIGHTS: PromptWeights =
    PromptWeights::OPENAI.per_conversation(60).functions(1_000).schema_bytes_per_token(6);
