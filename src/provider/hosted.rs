//! Providers that speak OpenAI's format and charge by usage.

use super::request::{Request, Weights};
use super::reserve::Reserved;
use super::rules::Rules;
use super::{Profile, compatible, limits, openai};
use crate::quota::Algorithm;

/// DeepSeek, `api.deepseek.com`.
///
/// - **Charge**: requests in flight are limited, not their rate: set
///   [`concurrency`](crate::quota::Quota::concurrency). `Tokens` are the usage. Source: DeepSeek's
///   page on rate limits.
/// - **Limits**: no headers. **Quotas**: none.
pub const DEEPSEEK: Profile =
    Profile::new(&Rules { name: "deepseek", urls: &["api.deepseek.com"], ..RULES });

/// Together, `api.together.xyz`.
///
/// - **Charge**: requests and tokens, by usage.
/// - **Limits**: its headers speak of requests per second (recorded). **Quotas**: none; they follow
///   from the account's recent use.
pub const TOGETHER: Profile = Profile::new(&Rules {
    name: "together",
    urls: &["api.together.xyz", "api.together.ai"],
    limits: |headers| limits::TOGETHER.read(headers),
    ..RULES
});

/// Cerebras, `api.cerebras.ai`.
///
/// - **Charge** (`Tokens`): admitted by the prompt and `max_completion_tokens`, or what the context
///   leaves where that is unset (8,192 tokens of it are reserved here: the shortest context served);
///   in the end the usage. Source: Cerebras' page on rate limits.
/// - **Limits**: token buckets; its headers speak of requests per day and tokens per minute.
/// - **Quotas**: none; they differ by model and tier.
pub const CEREBRAS: Profile = Profile::new(&Rules {
    name: "cerebras",
    urls: &["api.cerebras.ai"],
    algorithm: Algorithm::TokenBucket,
    reserve: |request: &Request| {
        let input = request.prompt_tokens(&WEIGHTS);
        Reserved::at_most(request, input, CEREBRAS_CONTEXT.saturating_sub(input))
    },
    limits: |headers| limits::BY_NAME.read(headers),
    ..RULES
});

/// The router of Hugging Face, `router.huggingface.co`.
///
/// - **Charge**: by usage, at the provider that it routes to.
/// - **Limits**: no headers seen. **Quotas**: none; what is limited is money.
pub const HUGGINGFACE: Profile = Profile::new(&Rules {
    name: "huggingface",
    urls: &["router.huggingface.co", "api-inference.huggingface.co"],
    ..RULES
});

/// Writer, `api.writer.com`.
///
/// - **Charge**: requests and tokens a minute, by usage.
/// - **Limits**: no headers seen. **Quotas**: none.
pub const WRITER: Profile =
    Profile::new(&Rules { name: "writer", urls: &["api.writer.com"], ..RULES });

/// Voyage, `api.voyageai.com`: embeddings and rerankings.
///
/// - **Charge**: requests and tokens a minute, by usage, which states a total.
/// - **Limits**: no headers seen. **Quotas**: none; they differ by model and tier.
pub const VOYAGE: Profile =
    Profile::new(&Rules { name: "voyage", urls: &["api.voyageai.com"], ..RULES });

/// OpenRouter, `openrouter.ai`.
///
/// - **Charge**: by usage. Models whose name ends in `:free` are limited in requests, all of them
///   together, failed ones included; others by the provider behind them.
/// - **Limits**: only its own refusals carry headers.
/// - **Quotas**: for `:free`, 20 requests a minute and 50 a UTC day, of February 2026; it is 1,000 a
///   day for an account that has bought credits. Source: OpenRouter's page on limits.
pub const OPENROUTER: Profile = Profile::new(&Rules {
    name: "openrouter",
    urls: &["openrouter.ai"],
    limits: |headers| limits::OPENROUTER.read(headers),
    ..RULES
});

const RULES: Rules = Rules {
    reserve: |request: &Request| Reserved::by_usage(request, request.prompt_tokens(&WEIGHTS)),
    ..compatible::RULES
};

/// Recorded: 250 to 600 tokens to introduce tools, by the model.
const WEIGHTS: Weights = Weights { functions: 300, schema: 6, ..openai::WEIGHTS };

const CEREBRAS_CONTEXT: u64 = 8_192;
