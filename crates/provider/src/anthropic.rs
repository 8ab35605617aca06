//! Anthropic: input and output limited separately, cache reads free.

use paceline_limiter::quota::Algorithm;

use crate::Profile;
use crate::api::Api;
use crate::charge::Charge;
use crate::count_tokens::format::CountTokensFormat;
use crate::cut_streams::CutStreams;
use crate::error::ErrorRules;
use crate::gemini;
use crate::limits::LimitHeaders;
use crate::mode::{Mode, ModeField};
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;
use crate::utilization::UtilizationHeaders;

/// Anthropic, `api.anthropic.com`, and any host with the path `/v1/messages`.
///
/// - **Charge**: `InputTokens` (ITPM) are the prompt without cache reads, estimated at admission and
///   settled by the first usage (`message_start`). `OutputTokens` (OTPM) are the generated tokens,
///   settled at the end; `max_tokens` bounds them and is not charged. `Tokens`, a combined limit, is
///   both. Source: Anthropic's page on rate limits.
/// - **Limits**: token buckets; the remaining tokens are rounded to thousands.
/// - **Modes**: fast mode (`speed: "fast"`) has limits of its own, in headers of its own; source:
///   platform.claude.com/docs/en/build-with-claude/fast-mode, November 2026.
/// - **Subscriptions**: headers state the used part of windows of 5 hours and 7 days:
///   [`UtilizationHeaders::AnthropicUnified`].
/// - **Cut streams** are charged for what was received, unless the model thinks: the stream shows a summary of its
///   thinking, or none. Claude 5 thinks unless `thinking` is `disabled`, earlier models only if asked to; source:
///   platform.claude.com/docs/en/build-with-claude/adaptive-thinking, read in November 2026.
/// - **Errors**: a 429 without `retry-after` is that of a spending limit, and terminal. "In general, failed requests
///   are not charged" (Anthropic's support center, "How will I be billed?"; read in November 2026).
/// - **Quotas**: of the Start tier, with separate limits of input and output; the models of a family that
///   Anthropic counts together share them. New organizations may start below.
pub const ANTHROPIC: Profile = Profile::new(
    &RULES
        .urls(&["api.anthropic.com", "*/v1/messages", "*/v1/messages/count_tokens"])
        .limits(LimitHeaders::ANTHROPIC)
        .utilization(UtilizationHeaders::AnthropicUnified)
        .modes(&[Mode::new("fast", ModeField::Speed, "fast").limits(LimitHeaders::ANTHROPIC_FAST)])
        .errors(ErrorRules::new().unbilled_failures())
        .cut_streams(CutStreams::stopping_for(WITHOUT_THINKING))
        .count_tokens(CountTokensFormat::Anthropic)
        .api(
            Api::bearer(&["ANTHROPIC_API_KEY"])
                .origin("https://api.anthropic.com")
                .endpoint("/v1/messages")
                .key_header("x-api-key")
                .constant_headers(&[("anthropic-version", "2023-06-01")]),
        ),
);

/// Claude on Google's Vertex, `.../publishers/anthropic/models/NAME:rawPredict`: Anthropic's format
/// and charge, but Google's quotas, which differ by region and have no default here. Only successes are billed,
/// as with [`VERTEX`](crate::VERTEX).
pub const VERTEX_ANTHROPIC: Profile = Profile::new(
    &Rules { name: "vertex-anthropic", ..RULES }
        .urls(&["*aiplatform.googleapis.com/*/publishers/anthropic/*", "*/publishers/anthropic/*"])
        .errors(ErrorRules::new().unbilled_failures())
        .api(
            Api::bearer(&[])
                .endpoint("/publishers/anthropic/models/{model}:rawPredict")
                .advice(gemini::VERTEX_ADVICE),
        ),
);

/// The models that don't think unless a request enables it.
const WITHOUT_THINKING: &[&str] = &[
    "claude-2*",
    "claude-instant*",
    "claude-3*",
    "claude-opus-4*",
    "claude-sonnet-4*",
    "claude-haiku-4*",
];

const RULES: Rules = Rules::built_in("anthropic")
    .algorithm(Algorithm::TokenBucket)
    .weights(PromptWeights::ANTHROPIC)
    .charge(Charge::by_usage().without_cache_reads().settling_input_early());
