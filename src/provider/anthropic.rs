//! Anthropic: input and output counted apart, the cache left out.

use super::request::{Request, Weights};
use super::reserve::{Reserved, used};
use super::rules::Rules;
use super::{Profile, class, compatible, limits, media, openai};
use crate::quota::{Algorithm, Cost, Dimension, SettleAt, Usage};

/// Anthropic, `api.anthropic.com`, and any host with the path `/v1/messages`.
///
/// - **Charge**: `InputTokens` (ITPM) are the prompt without what was read from the cache, estimated
///   at admission and settled by the first usage (`message_start`). `OutputTokens` (OTPM) are what
///   is generated, settled at the end; `max_tokens` is their ceiling and is not charged. `Tokens`, a
///   combined limit, is both. Source: Anthropic's page on rate limits.
/// - **Limits**: token buckets; what remains of tokens is rounded to thousands.
/// - **Errors**: a 429 without `retry-after` is that of a spending limit, and terminal.
/// - **Quotas**: tier 1 of February 2026, by family.
pub const ANTHROPIC: Profile = Profile::new(&Rules {
    name: "anthropic",
    urls: &["api.anthropic.com", "*/v1/messages", "*/v1/messages/count_tokens"],
    limits: |headers| limits::ANTHROPIC.read(headers),
    classify: class::anthropic,
    ..RULES
});

/// Claude on Google's Vertex, `.../publishers/anthropic/models/NAME:rawPredict`: Anthropic's format
/// and charge, but Google's quotas, which differ by region and have no default here.
pub const VERTEX_ANTHROPIC: Profile = Profile::new(&Rules {
    name: "vertex-anthropic",
    urls: &["*aiplatform.googleapis.com/*/publishers/anthropic/*", "*/publishers/anthropic/*"],
    ..RULES
});

const RULES: Rules = Rules {
    algorithm: Algorithm::TokenBucket,
    settles,
    reserve: |request: &Request| Reserved::by_usage(request, request.prompt_tokens(&WEIGHTS)),
    charge,
    ..compatible::RULES
};

fn settles(dimension: &Dimension) -> SettleAt {
    match dimension {
        Dimension::InputTokens => SettleAt::FirstUsage,
        Dimension::OutputTokens | Dimension::Tokens => SettleAt::End,
        _ => SettleAt::Send,
    }
}

fn charge(reserved: &Cost, usage: &Usage) -> Cost {
    let input = usage.input.saturating_sub(usage.cache_read);
    used(reserved, usage).input_tokens(input).tokens(input.saturating_add(usage.output))
}

/// Recorded: 500 to introduce tools, 55 to 65 around a call and its result, 2,200 for a web search,
/// and 4,700 for the execution of code.
pub(super) const WEIGHTS: Weights = Weights {
    schema: 4,
    functions: 500,
    call: 60,
    search: 2_200,
    built_in: 1_000,
    medium: media::anthropic,
    ..openai::WEIGHTS
};
