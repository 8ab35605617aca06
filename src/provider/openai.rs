//! OpenAI: charges by the size of the request, when it admits it.

use super::estimate::tokens;
use super::request::{Endpoint, Request, Weights};
use super::reserve::{Reserved, at_send, usage_apart};
use super::rules::Rules;
use super::scanner::Counts;
use super::{Profile, class, limits, media, retry};
use crate::quota::Algorithm;

/// OpenAI, `api.openai.com`.
///
/// - **Charge** (`Tokens`, the TPM limit): fixed when the request is admitted; usage plays no part.
///   Chat: UTF-8 bytes of the contents / 4, one for each message, one for the request (16 x `n` where
///   `n` is set and `max_tokens` is not), images by their tiles, other media by what they come to as
///   input, and `max_tokens` x `n`. Completions and embeddings: bytes / 4, and `max_tokens` x `n`.
///   Responses: the prompt's tokens and a constant; `max_output_tokens` plays no part. Source: the
///   `limit - remaining` of its headers in 193 recordings. (In 2024 it added 16 to every chat without
///   a bound, and nothing for images.)
/// - **Input and output tokens**: the prompt is estimated, the output is `max_tokens` x `n`, or
///   1,024 a choice where it is unset. Nothing at OpenAI is limited by them.
/// - **Limits**: token buckets that hold the whole amount (`reset` = used / limit x window).
/// - **Quotas**: tier 1 of February 2026.
pub const OPENAI: Profile =
    Profile::new(&Rules { name: "openai", urls: &["api.openai.com"], ..RULES });

/// What is charged at admission, by a server that does as OpenAI does.
pub(super) const RULES: Rules = Rules {
    name: "",
    urls: &[],
    algorithm: Algorithm::TokenBucket,
    settles: at_send,
    reserve,
    charge: usage_apart,
    limits: |headers| limits::OPENAI.read(headers),
    delay: retry::delay,
    classify: class::of_response,
    counts_in_head: |_| Counts::default(),
    charged_in_head: |_| None,
};

fn reserve(request: &Request) -> Reserved {
    Reserved::at_admission(request, request.prompt_tokens(&WEIGHTS), admission(request))
}

/// What the TPM limit is charged, in tokens.
pub(super) fn admission(request: &Request) -> u64 {
    let text = tokens(request.text);
    let bound = request.max_output().unwrap_or(0);
    match request.endpoint {
        // Tools add nothing, nor do the calls in an assistant's message.
        Endpoint::Chat => text
            .saturating_add(request.items)
            .saturating_add(answers(request))
            .saturating_add(request.media_tokens(media::openai))
            .saturating_add(bound),
        Endpoint::Completions => text.saturating_add(request.token_ids).saturating_add(bound),
        Endpoint::Responses => responses(request),
        Endpoint::Embeddings | Endpoint::Other => text.saturating_add(request.token_ids),
    }
}

/// What a chat is charged for its answer, the bound aside: one; but 16 for each choice where `n` is
/// set and no bound is. So was every recorded request with an `n`, all of 2024.
fn answers(request: &Request) -> u64 {
    match (request.choices, request.max_output()) {
        (Some(choices), None) => choices.saturating_mul(16),
        _ => 1,
    }
}

/// Responses count the prompt as the model sees it. Recorded: `usage.input_tokens` + 19, and 198
/// more where there are functions, to the token.
fn responses(request: &Request) -> u64 {
    let functions = if request.functions > 0 { 198 } else { 0 };
    request.prompt_tokens(&WEIGHTS).saturating_add(19).saturating_add(functions)
}

/// The prompt as it is likely to be. A conversation costs 4 tokens an item and 3 to begin the answer
/// (OpenAI's cookbook), 8 to introduce functions, and 8 a call (recordings); the model sees a
/// function in a shorter notation than JSON. A web search is 292 (recorded: 292, 297). Of 152
/// recorded prompts of mere text, 118 are within 3 tokens and 10 %.
pub(super) const WEIGHTS: Weights = Weights {
    text: 4,
    item: 4,
    answer: 3,
    call: 8,
    schema: 8,
    functions: 8,
    search: 292,
    built_in: 0,
    medium: media::openai,
};
