//! OpenAI: charges by the size of the request, when it admits it.

use paceline_limiter::quota::Algorithm;

use crate::Profile;
use crate::admission::AdmissionCharge;
use crate::api::Api;
use crate::charge::Charge;
use crate::count_tokens::format::CountTokensFormat;
use crate::cut_streams::CutStreams;
use crate::error::ErrorRules;
use crate::limits::LimitHeaders;
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;
use crate::unit::Unit;
use crate::utilization::UtilizationHeaders;

/// OpenAI, `api.openai.com`.
///
/// - **Charge** (`Tokens`, the TPM limit): fixed when the request is admitted; usage has no effect.
///   Chat: UTF-8 bytes of the contents / 4, 1 for each message, 1 for the request (16 x `n` if `n` is
///   set and `max_tokens` is not), images by their tiles, other media by their estimated input tokens,
///   and `max_tokens` x `n`. Completions and embeddings: bytes / 4, and `max_tokens` x `n`.
///   Responses: the prompt's tokens + 19, and 198 more if there are functions (recorded, to the
///   token); `max_output_tokens` has no effect. The prompt is estimated by its words, the notation in
///   which models are shown functions and schemas, and the reasoning since the user's last message; of
///   deferred functions, the parameters count once they are loaded. Models that reason are charged
///   more, differently for equal requests (recorded: 228 and 624 for a prompt of 12 tokens), which can't
///   be predicted. Source: the `limit - remaining` of its headers in 193 recordings. (In 2024 it added 16
///   to every chat without a bound, and nothing for images.)
/// - **Input and output tokens**: the prompt is estimated, the output is `max_tokens` x `n`, or
///   1,024 per choice if it is unset. OpenAI has no limits for them.
/// - **Failures**: a 400 whose headers state the remaining tokens has taken those of the request (recorded: 775 for an
///   image that couldn't be downloaded); the errors of validation state none. Refused requests count ("unsuccessful
///   requests contribute to your per-minute limit", help.openai.com/en/articles/5955604).
/// - **Units**: images per minute (`images`); source: developers.openai.com/api/docs/guides/rate-limits, read on
///   2026-11-25. Images that a tool of Responses makes can't be predicted.
/// - **Free**: moderations; source: developers.openai.com/api/docs/guides/moderation, November 2026.
/// - **Without a model** run moderations (`omni-moderation-latest`) and edits of images (`gpt-image-2.5-sunburst`); source:
///   the API reference, read second-hand (October 2026). A prompt that OpenAI keeps has a model of its own. All other
///   requests have to name one, images made of a text too: their former default depended on other parameters.
/// - **Limits**: token buckets that hold the whole amount (`reset` = used / limit x window).
/// - **Usage** of a chat's stream is stated with `stream_options.include_usage` only (recorded).
/// - **Cut streams** are charged for what was received, with GPT-4.5 and earlier models and where `reasoning_effort` is
///   `none`; the stream doesn't show the reasoning of other models.
/// - **Subscriptions**: Codex' headers state the used part of two windows: [`UtilizationHeaders::Codex`].
/// - **Quotas**: tier 1, from the page of each model. Prompts above 128,000 or 272,000 tokens have limits of
///   their own with some models, which are not built in.
pub const OPENAI: Profile = Profile::new(
    &Rules::built_in("openai")
        .urls(&["api.openai.com"])
        .algorithm(Algorithm::TokenBucket)
        .weights(PromptWeights::OPENAI)
        .charge(Charge::at_admission(ADMISSION))
        .units(&[Unit::Images])
        .free(&["POST /moderations", "POST /conversations", "POST /conversations/conv_*"])
        .default_models(DEFAULT_MODELS)
        .limits(LimitHeaders::OPENAI)
        .utilization(UtilizationHeaders::Codex)
        .usage_on_request()
        .errors(ErrorRules::new().counted_statuses(&[429, 503]))
        .cut_streams(CUT_STREAMS)
        .count_tokens(CountTokensFormat::OpenAi)
        .api(Api::bearer(&["OPENAI_API_KEY"]).origin("https://api.openai.com")),
);

const DEFAULT_MODELS: &[(&str, &str)] =
    &[("/moderations", "omni-moderation-latest"), ("/images/edits", "gpt-image-2.5-sunburst")];

/// Generation stops when the connection is closed. The reasoning of later models isn't in the stream
/// (developers.openai.com/api/docs/guides/reasoning); `reasoning_effort: "none"` turns it off.
pub(super) const CUT_STREAMS: CutStreams =
    CutStreams::stopping_for(&["gpt-3.5*", "gpt-4*", "chatgpt-4o*", "ft:gpt-3.5*", "ft:gpt-4*"]);

/// The charge of the TPM limit. Every recorded request with `n` and without a bound was charged 16 a
/// choice, all of them in 2024.
pub(super) const ADMISSION: AdmissionCharge = AdmissionCharge::new()
    .per_message(1)
    .per_chat(1)
    .per_unbounded_choice(16)
    .with_media()
    .responses_by_prompt(19, 198, 6);
