//! Providers with OpenAI's format that charge by usage.

use super::Profile;
use super::api::Api;
use super::charge::Charge;
use super::limits::LimitHeaders;
use super::prompt_weights::PromptWeights;
use super::rules::Rules;
use crate::quota::Algorithm;

/// DeepSeek, `api.deepseek.com`.
///
/// - **Charge**: requests in flight are limited, not their rate: set
///   [`concurrency`](crate::quota::Quota::concurrency). `Tokens` are the usage. Source: DeepSeek's
///   page on rate limits.
/// - **Limits**: no headers. **Quotas**: none.
pub const DEEPSEEK: Profile = Profile::new(
    &hosted("deepseek")
        .urls(&["api.deepseek.com"])
        .api(Api::bearer(&["DEEPSEEK_API_KEY"]).origin("https://api.deepseek.com")),
);

/// Together, `api.together.xyz`.
///
/// - **Charge**: requests and tokens, by usage.
/// - **Limits**: its headers state requests per second (recorded). **Quotas**: none; they follow
///   from the account's recent use.
pub const TOGETHER: Profile = Profile::new(
    &hosted("together")
        .urls(&["api.together.xyz", "api.together.ai"])
        .limits(LimitHeaders::TOGETHER)
        .api(Api::bearer(&["TOGETHER_API_KEY"]).origin("https://api.together.xyz")),
);

/// Cerebras, `api.cerebras.ai`.
///
/// - **Charge** (`Tokens`): admitted by the prompt and `max_completion_tokens`, or the rest of the
///   context if that is unset (8,192 tokens are assumed: the shortest context served); in the end the
///   usage. Source: Cerebras' page on rate limits.
/// - **Limits**: token buckets; its headers state requests per day and tokens per minute.
/// - **Quotas**: none; they differ by model and tier.
pub const CEREBRAS: Profile = Profile::new(
    &hosted("cerebras")
        .urls(&["api.cerebras.ai"])
        .algorithm(Algorithm::TokenBucket)
        .charge(Charge::by_usage().reserving_max_output().context(8_192))
        .limits(LimitHeaders::BY_NAME)
        .api(Api::bearer(&["CEREBRAS_API_KEY"]).origin("https://api.cerebras.ai")),
);

/// The router of Hugging Face, `router.huggingface.co`.
///
/// - **Charge**: by usage, at the provider that it routes to.
/// - **Limits**: no headers seen. **Quotas**: none; spending is limited.
pub const HUGGINGFACE: Profile = Profile::new(
    &hosted("huggingface")
        .urls(&["router.huggingface.co", "api-inference.huggingface.co"])
        .api(Api::bearer(&["HF_TOKEN"]).origin("https://router.huggingface.co")),
);

/// Writer, `api.writer.com`.
///
/// - **Charge**: requests and tokens per minute, by usage.
/// - **Limits**: no headers seen. **Quotas**: none.
pub const WRITER: Profile =
    Profile::new(&hosted("writer").urls(&["api.writer.com"]).api(
        Api::bearer(&["WRITER_API_KEY"]).origin("https://api.writer.com").endpoint("/v1/chat"),
    ));

/// Voyage, `api.voyageai.com`: embeddings and rerankings.
///
/// - **Charge**: requests and tokens per minute, by usage, which states only a total.
/// - **Limits**: no headers seen. **Quotas**: none; they differ by model and tier.
pub const VOYAGE: Profile = Profile::new(&hosted("voyage").urls(&["api.voyageai.com"]).api(
    Api::bearer(&["VOYAGE_API_KEY"]).origin("https://api.voyageai.com").endpoint("/v1/embeddings"),
));

/// OpenRouter, `openrouter.ai`.
///
/// - **Charge**: by usage. Requests to models whose name ends in `:free` are limited together, failed
///   ones included; others by the provider behind them.
/// - **Limits**: only its own refusals have headers.
/// - **Quotas**: for `:free`, 20 requests per minute and 50 per UTC day, of February 2026; 1,000 per day
///   for an account that has bought credits. Source: OpenRouter's page on limits.
pub const OPENROUTER: Profile = Profile::new(
    &hosted("openrouter").urls(&["openrouter.ai"]).limits(LimitHeaders::OPENROUTER).api(
        Api::bearer(&["OPENROUTER_API_KEY"]).origin("https://openrouter.ai").openai_path("/api/v1"),
    ),
);

const fn hosted(name: &'static str) -> Rules {
    Rules::built_in(name).weights(PromptWeights::OPEN_MODELS)
}
