//! Any server that speaks OpenAI's API and of which nothing else is known.

use super::estimate::{Guess, UNBOUNDED_OUTPUT};
use super::openai::admission;
use super::profile::Rules;
use super::request::{Endpoint, Request};
use super::scanner::Counts;
use super::scanner::openai::{WANTED, usage};
use super::{Estimate, Profile, class, limits, retry};
use crate::quota::{Algorithm, Cost, Dimension, SettleAt, Usage};

/// Any OpenAI-compatible server: a gateway, a local one, a provider without a profile.
///
/// - **Charge**: unknown, so the most of what is usual: what OpenAI would take at admission, or the
///   usage that the response states if that is more, held until its end. Reserved until then: the
///   prompt as OpenAI would count it, and `max_tokens` x `n`, or 1,024 a choice where it is unset.
///   More than that is charged in full when the response ends.
/// - **Limits**: sliding windows, the algorithm that is safe against any other.
/// - **Quotas**: none.
pub const COMPATIBLE: Profile =
    Profile::new(&Rules { name: "compatible", read_request, charge, ..RULES });

/// An OpenAI-compatible server that is known to charge by usage and by nothing else: as
/// [`COMPATIBLE`], but what was reserved and not used is free again when the response ends. So the
/// reservation can be generous: the prompt at three bytes of text a token, and a little for each
/// message, tool and image.
pub const COMPATIBLE_USAGE: Profile = Profile::new(&Rules {
    name: "compatible-usage",
    read_request: read_for_usage,
    charge,
    ..RULES
});

const RULES: Rules = Rules {
    name: "",
    hosts: &[],
    algorithm: Algorithm::SlidingWindow,
    quotas: &[],
    settles,
    read_request,
    charge,
    limits: |headers| limits::COMPATIBLE.read(headers),
    delay: retry::delay,
    classify: class::of_response,
    counts_in_head: |_| Counts::default(),
    wanted: WANTED,
    usage,
};

fn settles(dimension: &Dimension) -> SettleAt {
    match dimension {
        Dimension::Tokens | Dimension::InputTokens | Dimension::OutputTokens => SettleAt::End,
        _ => SettleAt::Send,
    }
}

fn read_request(path: &str, body: &[u8]) -> Estimate {
    read(path, body, Request::prompt_tokens, admission)
}

fn read_for_usage(path: &str, body: &[u8]) -> Estimate {
    read(path, body, Request::prompt_bound, |_, _| 0)
}

fn read(
    path: &str,
    body: &[u8],
    prompt: fn(&Request, Endpoint) -> u64,
    floor: fn(Endpoint, &Request) -> u64,
) -> Estimate {
    let Some(request) = Request::read(body) else {
        return Estimate::from_size(Request::fallback_size(body));
    };
    let endpoint = Endpoint::of(path, &request);
    let (input, floor) = (prompt(&request, endpoint), floor(endpoint, &request));
    let output = if endpoint.generates() { request.output(UNBOUNDED_OUTPUT) } else { 0 };
    let tokens = input.saturating_add(output).max(floor);
    let cost = Cost::new().tokens(tokens).input_tokens(input).output_tokens(output);
    let guess = endpoint.generates().then_some(Guess { input: Some(input) });
    request.into_estimate(cost, floor, guess)
}

fn charge(reserved: &Cost, usage: &Usage) -> Cost {
    reserved.clone().tokens(usage.total()).input_tokens(usage.input).output_tokens(usage.output)
}
