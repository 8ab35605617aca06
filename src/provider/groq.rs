//! Groq: charges as OpenAI does.

use super::estimate::tokens;
use super::request::{Endpoint, Request};
use super::reserve::Reserved;
use super::rules::Rules;
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
