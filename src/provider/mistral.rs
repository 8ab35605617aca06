//! Mistral: says in a header what it charged.

use http::HeaderMap;

use super::openai::WEIGHTS;
use super::request::Request;
use super::reserve::Reserved;
use super::rules::Rules;
use super::{Profile, compatible, limits};
use crate::quota::Algorithm;

/// Mistral, `api.mistral.ai`.
///
/// - **Charge** (`Tokens`): what the header `x-ratelimit-tokens-query-cost` says
///   ([`Profile::charged_in_head`]); recorded, that is the usage, input and output, to the token.
/// - **Limits**: sliding windows of a minute and a month; requests over 10 s.
/// - **Quotas**: none; they differ by workspace.
pub const MISTRAL: Profile = Profile::new(&Rules {
    name: "mistral",
    urls: &["api.mistral.ai", "codestral.mistral.ai"],
    algorithm: Algorithm::SlidingWindow,
    reserve: |request: &Request| Reserved::by_usage(request, request.prompt_tokens(&WEIGHTS)),
    charged_in_head,
    limits: |headers| limits::BY_NAME.read(headers),
    ..compatible::RULES
});

fn charged_in_head(headers: &HeaderMap) -> Option<u64> {
    headers.get("x-ratelimit-tokens-query-cost")?.to_str().ok()?.trim().parse().ok()
}
