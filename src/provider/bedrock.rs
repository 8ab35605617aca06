//! Amazon Bedrock: every model maker's format, and one of its own.

use http::HeaderMap;

use super::profile::Rules;
use super::request::{Request, Weights};
use super::reserve::{Reserved, usage_in_full};
use super::scanner::{Count, Counts, Field, Wanted};
use super::{Profile, anthropic, compatible, usage};
use crate::quota::{Algorithm, Cost, Usage};

/// Amazon Bedrock, `bedrock-runtime.REGION.amazonaws.com` (`/model/NAME/converse`, `invoke` and
/// their streams) and the OpenAI-compatible `bedrock-mantle.REGION.api.aws`.
pub const BEDROCK: Profile = Profile::new(&Rules {
    name: "bedrock",
    urls: &[
        "bedrock-runtime*.amazonaws.com",
        "bedrock-mantle.*.api.aws",
        "*/model/*/converse",
        "*/model/*/converse-stream",
        "*/model/*/invoke",
        "*/model/*/invoke-with-response-stream",
    ],
    algorithm: Algorithm::TOKEN_BUCKET,
    reserve: |request: &Request| Reserved::by_usage(request, request.prompt_tokens(&WEIGHTS)),
    charge,
    counts_in_head,
    wanted: &Wanted::new(FIELDS),
    usage: usage::cache_apart,
    ..compatible::RULES
});

fn charge(reserved: &Cost, usage: &Usage) -> Cost {
    let input = usage.input.saturating_sub(usage.cache_read);
    usage_in_full(reserved, usage).tokens(input.saturating_add(usage.output))
}

/// `invoke` answers in the model maker's format, but its headers count for all of them.
fn counts_in_head(headers: &HeaderMap) -> Counts {
    let mut counts = Counts::default();
    for (name, count) in HEAD {
        let value = headers.get(*name).and_then(|value| value.to_str().ok());
        if let Some(value) = value.and_then(|value| value.trim().parse().ok()) {
            counts.set(*count, value);
        }
    }
    counts
}

const HEAD: &[(&str, Count)] = &[
    ("x-amzn-bedrock-input-token-count", Count::Input),
    ("x-amzn-bedrock-output-token-count", Count::Output),
    ("x-amzn-bedrock-cache-read-input-token-count", Count::CacheRead),
    ("x-amzn-bedrock-cache-write-input-token-count", Count::CacheWrite),
];

const FIELDS: &[Field] = &[
    Field::count(&["usage", "inputTokens"], Count::Input),
    Field::count(&["usage", "outputTokens"], Count::Output),
    Field::count(&["usage", "cacheReadInputTokens"], Count::CacheRead),
    Field::count(&["usage", "cacheWriteInputTokens"], Count::CacheWrite),
    // Claude.
    Field::count(&["usage", "input_tokens"], Count::Input),
    Field::count(&["usage", "output_tokens"], Count::Output),
    Field::count(&["usage", "cache_read_input_tokens"], Count::CacheRead),
    Field::count(&["usage", "cache_creation_input_tokens"], Count::CacheWrite),
    Field::count(&["message", "usage", "input_tokens"], Count::Input),
    Field::count(&["message", "usage", "output_tokens"], Count::Output),
    Field::count(&["message", "usage", "cache_read_input_tokens"], Count::CacheRead),
    Field::count(&["message", "usage", "cache_creation_input_tokens"], Count::CacheWrite),
    // OpenAI's and Qwen's models, and mantle.
    Field::count(&["usage", "prompt_tokens"], Count::Input),
    Field::count(&["usage", "completion_tokens"], Count::Output),
    // Titan, Llama, and what the last chunk of a stream of `invoke` says for all.
    Field::count(&["inputTextTokenCount"], Count::Input),
    Field::count(&["prompt_token_count"], Count::Input),
    Field::count(&["generation_token_count"], Count::Output),
    Field::count(&["amazon-bedrock-invocationMetrics", "inputTokenCount"], Count::Input),
    Field::count(&["amazon-bedrock-invocationMetrics", "outputTokenCount"], Count::Output),
];

/// Recorded: Claude and Nova take some 500 tokens to introduce tools, other makers fewer.
const WEIGHTS: Weights = Weights { item: 1, ..anthropic::WEIGHTS };
