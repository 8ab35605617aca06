//! Groq: charges as OpenAI does.

use super::estimate::tokens;
use super::profile::Rules;
use super::request::{Endpoint, Request};
use super::reserve::Reserved;
use super::scanner::{Count, Field, Wanted};
use super::{Profile, limits, openai};

/// Groq, `api.groq.com`.
///
/// - **Charge** (`Tokens`, the TPM limit): as OpenAI, at admission, but four tokens for each message:
///   bytes of text / 4 + 4 x messages + `max_tokens` x `n` where it is set. Source: six recordings,
///   five of which say so to the token, but all of one prompt. Cached tokens are free [Groq's page];
///   which they will be is not known in advance.
/// - **Limits**: token buckets; requests per day, tokens per minute.
/// - **Quotas**: none; they differ by model and tier.
pub const GROQ: Profile = Profile::new(&Rules {
    name: "groq",
    urls: &["api.groq.com"],
    limits: |headers| limits::GROQ.read(headers),
    reserve,
    wanted: &Wanted::new(FIELDS),
    ..openai::RULES
});

fn reserve(request: &Request) -> Reserved {
    let messages = match request.endpoint {
        Endpoint::Chat => request.items.saturating_mul(4),
        _ => 0,
    };
    let charge = tokens(request.text)
        .saturating_add(messages)
        .saturating_add(request.max_output().unwrap_or(0));
    Reserved::at_admission(request, request.prompt_tokens(&openai::WEIGHTS), charge)
}

/// The last chunk of a stream states it under `x_groq`, asked for or not.
const FIELDS: &[Field] = &[
    Field::count(&["usage", "prompt_tokens"], Count::Input),
    Field::count(&["usage", "completion_tokens"], Count::Output),
    Field::count(&["usage", "total_tokens"], Count::Total),
    Field::count(&["usage", "prompt_tokens_details", "cached_tokens"], Count::CacheRead),
    Field::count(&["usage", "input_tokens"], Count::Input),
    Field::count(&["usage", "output_tokens"], Count::Output),
    Field::count(&["usage", "input_tokens_details", "cached_tokens"], Count::CacheRead),
    Field::count(&["x_groq", "usage", "prompt_tokens"], Count::Input),
    Field::count(&["x_groq", "usage", "completion_tokens"], Count::Output),
    Field::count(&["x_groq", "usage", "total_tokens"], Count::Total),
    Field::count(&["x_groq", "usage", "prompt_tokens_details", "cached_tokens"], Count::CacheRead),
    Field::count(&["response", "usage", "input_tokens"], Count::Input),
    Field::count(&["response", "usage", "output_tokens"], Count::Output),
    Field::count(&["response", "usage", "total_tokens"], Count::Total),
];
