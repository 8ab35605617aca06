//! Amazon Bedrock: the formats of all model makers, and one of its own; and its mantle endpoint.

use paceline_limiter::quota::Algorithm;

use crate::Profile;
use crate::api::Api;
use crate::charge::Charge;
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;
use crate::scanner::TokenCount;

/// Amazon Bedrock, `bedrock-runtime.REGION.amazonaws.com` (`/model/NAME/converse`, `invoke` and
/// their streams). Its quotas are separate from those of [`BEDROCK_MANTLE`].
///
/// - **Model**: from the path, decoded; an inference profile's name or ARN as it is.
/// - **Charge** (`Tokens`, the TPM limit): at admission the prompt and `max_tokens`; in the end the
///   tokens that were read (but not from the cache), written to the cache and generated, where each
///   generated token counts several times with some models ([`Terms::burn_down`]): 5 times from Claude 3.7
///   on, 15 times with Claude Opus 4.8, 10 times with Claude 5, GPT-5 and GPT-6. If `max_tokens` is unset,
///   Bedrock takes the most that the model can generate; the usual output is reserved instead. Source:
///   Amazon's pages on quotas and burndown rates; not seen in recordings.
/// - **Limits**: token buckets. No headers state them; headers do state the usage, also for `invoke`,
///   whose body has the model maker's format.
/// - **Quotas**: none; they differ by account, region and model.
///
/// [`Terms::burn_down`]: crate::Terms::burn_down
pub const BEDROCK: Profile = Profile::new(
    &Rules::built_in("bedrock")
        .urls(&[
            "bedrock-runtime*.amazonaws.com",
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

/// The mantle endpoint of Amazon Bedrock, `bedrock-mantle.REGION.api.aws`: OpenAI's Chat Completions and
/// Responses, and Anthropic's Messages (`/anthropic/v1/messages`).
///
/// - **Charge**: `InputTokens` are the prompt and `max_tokens` at admission; at the end the prompt without
///   cache reads, and the generated tokens, since only the unused part of `max_tokens` is returned.
///   `OutputTokens` are the generated tokens, one each. If `max_tokens` is unset, the endpoint takes the
///   most that the model can generate; here the output is charged at the end instead.
/// - **Limits**: input and output tokens per minute, of each model and region, apart from those of
///   [`BEDROCK`]; no limit of requests. No headers state them. At the limit of output tokens a generation
///   stops, with a finish reason, and is not refused.
/// - **Quotas**: those of the models that Amazon lists; others have no fixed limit.
///
/// Source: Amazon's page "Quotas for the bedrock-mantle endpoint"
/// (docs.aws.amazon.com/bedrock/latest/userguide/quotas-mantle.html, looked up on 2026-11-23).
pub const BEDROCK_MANTLE: Profile = Profile::new(
    &Rules::built_in("bedrock-mantle")
        .urls(&["bedrock-mantle.*.api.aws"])
        .algorithm(Algorithm::TokenBucket)
        .weights(WEIGHTS)
        .charge(
            Charge::by_usage().reserving_max_output().without_cache_reads().output_in_input(),
        )
        .api(Api::bearer(&["AWS_BEARER_TOKEN_BEDROCK"]).advice(
            "its base URL is https://bedrock-mantle.REGION.api.aws; requests are not signed with AWS \
             access keys: create an Amazon Bedrock API key, or send through a proxy that signs",
        )),
);

/// Recorded: Claude and Nova take about 500 tokens to introduce tools, other makers' models fewer.
const WEIGHTS: PromptWeights = PromptWeights::ANTHROPIC.per_item(1);

/// Source: Amazon Bedrock's page on token burndown rates
/// (docs.aws.amazon.com/bedrock/latest/userguide/quotas-token-burndown.html) and the model cards of GPT,
/// looked up on 2026-11-23.
const OUTPUT_FACTORS: &[(&str, u64)] = &[
    ("*anthropic.claude-v*", 1),
    ("*anthropic.claude-instant*", 1),
    ("*anthropic.claude-3-haiku*", 1),
    ("*anthropic.claude-3-sonnet*", 1),
    ("*anthropic.claude-3-opus*", 1),
    ("*anthropic.claude-3-5-*", 1),
    ("*anthropic.claude-*-4-8*", 15),
    ("*anthropic.claude-fable-5*", 10),
    ("*anthropic.claude-opus-5*", 10),
    ("*anthropic.claude-sonnet-5*", 10),
    ("*anthropic.claude-*", 5),
    ("*openai.gpt-5*", 10),
    ("*openai.gpt-6*", 10),
];

const USAGE_HEADERS: &[(&str, TokenCount)] = &[
    ("x-amzn-bedrock-input-token-count", TokenCount::UncachedInput),
    ("x-amzn-bedrock-output-token-count", TokenCount::Output),
    ("x-amzn-bedrock-cache-read-input-token-count", TokenCount::CacheRead),
    ("x-amzn-bedrock-cache-write-input-token-count", TokenCount::CacheWrite),
];
