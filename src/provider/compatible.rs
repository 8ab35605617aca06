//! Any server that speaks OpenAI's API and of which nothing else is known.

use super::openai::{WEIGHTS, admission};
use super::request::{Request, Weights};
use super::reserve::{Reserved, at_end, usage_in_full};
use super::rules::Rules;
use super::{Profile, limits, openai};
use crate::quota::Algorithm;

/// Any OpenAI-compatible server: a gateway, a local one, a provider without a profile.
///
/// - **Charge**: unknown, so the most of what is usual: what OpenAI would take at admission, or the
///   usage that the response states if that is more, held until its end. Reserved until then: the
///   prompt as OpenAI would count it, and `max_tokens` x `n`, or 1,024 a choice where it is unset.
///   More than that is charged in full when the response ends.
/// - **Limits**: sliding windows, the algorithm that is safe against any other.
/// - **Quotas**: none.
pub const COMPATIBLE: Profile = Profile::new(&Rules {
    name: "compatible",
    reserve: |request| {
        Reserved::at_least(request, request.prompt_tokens(&WEIGHTS), admission(request))
    },
    ..RULES
});

/// An OpenAI-compatible server that is known to charge by usage and by nothing else: as
/// [`COMPATIBLE`], but what was reserved and not used is free again when the response ends. So the
/// reservation can be generous: the prompt at three bytes of text a token, and a little for each
/// message, tool and image.
pub const COMPATIBLE_USAGE: Profile = Profile::new(&Rules { name: "compatible-usage", ..RULES });

/// What is charged by usage, in OpenAI's format.
pub(super) const RULES: Rules = Rules {
    algorithm: Algorithm::SlidingWindow,
    settles: at_end,
    reserve,
    charge: usage_in_full,
    limits: |headers| limits::COMPATIBLE.read(headers),
    ..openai::RULES
};

fn reserve(request: &Request) -> Reserved {
    Reserved::by_usage(request, request.prompt_tokens(&GENEROUS))
}

/// The prompt as it seldom exceeds.
const GENEROUS: Weights =
    Weights { text: 3, item: 8, answer: 16, call: 16, schema: 4, functions: 0, ..WEIGHTS };
