//! Amazon Bedrock: the formats of all model makers, and one of its own.

use super::Profile;
use super::api::Api;
use super::charge::Charge;
use super::prompt_weights::PromptWeights;
use super::rules::Rules;
use super::scanner::TokenCount;
use crate::quota::Algorithm;

/// Amazon Bedrock, `bedrock-runtime.REGION.amazonaws.com` (`/model/NAME/converse`, `invoke` and
/// their streams) and the OpenAI-compatible `bedrock-mantle.REGION.api.aws`.
///
/// - **Model**: from the path, decoded; an inference profile's name or ARN as it is.
/// - **Charge** (`Tokens`, the TPM limit): at admission the prompt and `max_tokens`; in the end the
///   tokens that were read (but not from the cache), written to the cache and generated, where each
///   token that Claude 3.7 or newer generated counts five times ([`Terms::burn_down`]). If
///   `max_tokens` is unset, Bedrock takes the most that the model can generate; the usual output is
///   reserved instead. Source: Amazon's page on quotas; not seen in recordings.
/// - **Limits**: token buckets. No headers state them; headers do state the usage, also for `invoke`,
///   whose body has the model maker's format.
/// - **Quotas**: none; they differ by account, region and model.
///
/// [`Terms::burn_down`]: super::Terms::burn_down
pub const BEDROCK: Profile = Profile::new(
    &Rules::built_in("bedrock")
        .urls(&[
            "bedrock-runtime*.amazonaws.com",
            "bedrock-mantle.*.api.aws",
            "*/model/*/converse",
            "*/model/*/converse-stream",
            "*/model/*/invoke",
            "*/model/*/invoke-with-response-stream",
        ])
        .algorithm(Algorithm::TokenBucket)
        .weights(WEIGHTS)
        .charge(
            Charge::by_usage()
                .reserving_max_output()
                .without_cache_reads_in_total()
                .output_factors(OUTPUT_FACTORS),
        )
        .usage_headers(USAGE_HEADERS)
        .api(Api::bearer(&["AWS_BEARER_TOKEN_BEDROCK"]).openai_path("/openai/v1").advice(
            "its base URL is https://bedrock-runtime.REGION.amazonaws.com; requests are not \
                 signed with AWS access keys: create an Amazon Bedrock API key, or send through \
                 a proxy that signs",
        )),
);

/// Recorded: Claude and Nova take about 500 tokens to introduce tools, other makers' models fewer.
const WEIGHTS: PromptWeights = PromptWeights::ANTHROPIC.per_item(1);

/// Source: Amazon Bedrock's page on token burndown rates.
const OUTPUT_FACTORS: &[(&str, u64)] = &[
    ("*anthropic.claude-v*", 1),
    ("*anthropic.claude-instant*", 1),
    ("*anthropic.claude-3-haiku*", 1),
    ("*anthropic.claude-3-sonnet*", 1),
    ("*anthropic.claude-3-opus*", 1),
    ("*anthropic.claude-3-5-*", 1),
    ("*anthropic.claude-*", 5),
];

const USAGE_HEADERS: &[(&str, TokenCount)] = &[
    ("x-amzn-bedrock-input-token-count", TokenCount::UncachedInput),
    ("x-amzn-bedrock-output-token-count", TokenCount::Output),
    ("x-amzn-bedrock-cache-read-input-token-count", TokenCount::CacheRead),
    ("x-amzn-bedrock-cache-write-input-token-count", TokenCount::CacheWrite),
];
