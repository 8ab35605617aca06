//! Amazon Bedrock: every model maker's format, and one of its own.

use http::HeaderMap;

use super::request::{Request, Weights};
use super::reserve::{Reserved, usage_in_full};
use super::rules::Rules;
use super::scanner::{Count, Counts};
use super::{Profile, Terms, anthropic, compatible};
use crate::quota::{Algorithm, Cost, Usage};

/// Amazon Bedrock, `bedrock-runtime.REGION.amazonaws.com` (`/model/NAME/converse`, `invoke` and
/// their streams) and the OpenAI-compatible `bedrock-mantle.REGION.api.aws`.
///
/// - **Model**: from the path, decoded; an inference profile's name or ARN as it is.
/// - **Charge** (`Tokens`, the TPM limit): at admission the prompt and `max_tokens`; in the end what
///   was read (but not from the cache), written to the cache and generated, where each token that
///   Claude 3.7 or a newer one generated counts five times ([`Terms::burn_down`]). Where
///   `max_tokens` is unset, Bedrock takes the most that the model can generate; what is usual is
///   reserved instead. Source: Amazon's page on quotas; not seen in recordings.
/// - **Limits**: token buckets. No headers tell of them; of usage they do.
/// - **Quotas**: none; they differ by account, region and model.
///
/// [`Terms::burn_down`]: super::Terms::burn_down
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
    algorithm: Algorithm::TokenBucket,
    reserve,
    charge,
    counts_in_head,
    ..compatible::RULES
});

/// What may be generated is taken at admission; what was, in the end.
fn reserve(request: &Request) -> Reserved {
    let input = request.prompt_tokens(&WEIGHTS);
    let reserved = match request.max_output() {
        Some(_) => Reserved::at_most(request, input, 0),
        None => Reserved::by_usage(request, input),
    };
    let burn_down = request.model.as_deref().map_or(1, burn_down);
    Reserved { terms: Terms { burn_down, ..reserved.terms }, ..reserved }
}

/// A token that Claude 3.7 or a newer one generates takes five of the limit. (Amazon Bedrock's page
/// on token burndown rates.)
fn burn_down(model: &str) -> u64 {
    let Some((_, version)) = model.split_once("anthropic.claude-") else { return 1 };
    if OLD_CLAUDES.iter().any(|old| version.starts_with(old)) { 1 } else { 5 }
}

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

const OLD_CLAUDES: &[&str] = &["v", "instant", "3-haiku", "3-sonnet", "3-opus", "3-5-"];

const HEAD: &[(&str, Count)] = &[
    ("x-amzn-bedrock-input-token-count", Count::Input),
    ("x-amzn-bedrock-output-token-count", Count::Output),
    ("x-amzn-bedrock-cache-read-input-token-count", Count::ReadApart),
    ("x-amzn-bedrock-cache-write-input-token-count", Count::WrittenApart),
];

/// Recorded: Claude and Nova take some 500 tokens to introduce tools, other makers fewer.
const WEIGHTS: Weights = Weights { item: 1, ..anthropic::WEIGHTS };
