//! Groq: charges at admission, as OpenAI.

use paceline_limiter::quota::Algorithm;

use crate::Profile;
use crate::admission::AdmissionCharge;
use crate::api::Api;
use crate::charge::Charge;
use crate::limits::LimitHeaders;
use crate::mode::{Mode, ModeField};
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;
use crate::unit::Unit;

/// Groq, `api.groq.com`.
///
/// - **Charge** (`Tokens`, the TPM limit): as OpenAI, at admission, but four tokens for each message:
///   bytes of text / 4 + 4 x messages + `max_tokens` x `n` if it is set. Source: six recordings of one
///   prompt, five of which confirm it to the token. Cached tokens are free (Groq's page on rate
///   limits), but can't be predicted.
/// - **Units**: seconds of audio per hour and per day (`audio_seconds`; 7,200 and 28,800 for
///   `whisper-large-v3` and its turbo on the free plan); source: console.groq.com/docs/rate-limits, read on
///   2026-11-25.
/// - **Limits**: token buckets; requests per day, tokens per minute.
/// - **Modes**: flex (`service_tier: "flex"`) has ten times the limits; source:
///   console.groq.com/docs/flex-processing, November 2026.
/// - **Quotas**: none; they differ by model and tier.
pub const GROQ: Profile = Profile::new(
    &Rules::built_in("groq")
        .urls(&["api.groq.com"])
        .algorithm(Algorithm::TokenBucket)
        .weights(PromptWeights::OPENAI)
        .charge(Charge::at_admission(AdmissionCharge::new().per_message(4)))
        .units(&[Unit::AudioSeconds])
        .limits(LimitHeaders::GROQ)
        .modes(&[Mode::new("flex", ModeField::ServiceTier, "flex")])
        .api(
            Api::bearer(&["GROQ_API_KEY"]).origin("https://api.groq.com").openai_path("/openai/v1"),
        ),
);
