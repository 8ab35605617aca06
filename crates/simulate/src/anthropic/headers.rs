//! The rate-limit headers, as Anthropic writes them.

use std::time::Duration;

use jiff::Timestamp;

use crate::account::{Account, Standing};
use crate::refusal::LimitKind;
use crate::reply::Headers;

/// `anthropic-ratelimit-*` of one model.
///
/// Where input and output are limited and all tokens are not, `-tokens` states the sum of both.
pub(super) fn limits(account: &mut Account, now: u64) -> Headers {
    let requests = account.standing(now, LimitKind::RequestsPerMinute);
    let input = account.standing(now, LimitKind::InputTokensPerMinute);
    let output = account.standing(now, LimitKind::OutputTokensPerMinute);
    let tokens = account.standing(now, LimitKind::TokensPerMinute);
    let tokens = tokens.or_else(|| Some(both(input?, output?)));
    let stated = [(REQUESTS, requests), (TOKENS, tokens), (INPUT, input), (OUTPUT, output)];
    let stated = stated.into_iter().filter_map(|(names, standing)| Some((names, standing?)));
    stated.flat_map(|(names, standing)| named(names, standing, now)).collect()
}

/// `retry-after` in whole seconds, rounded up, so that who waits as long is admitted.
pub(super) fn retry(wait: Duration) -> Headers {
    vec![("retry-after", wait.as_nanos().div_ceil(SECOND_NS.into()).to_string())]
}

fn both(input: Standing, output: Standing) -> Standing {
    Standing {
        limit: input.limit.saturating_add(output.limit),
        remaining: input.remaining.saturating_add(output.remaining),
        reset: input.reset.max(output.reset),
    }
}

fn named(names: [&'static str; 3], standing: Standing, now: u64) -> [(&'static str, String); 3] {
    let [limit, remaining, reset] = names;
    let left = match names == REQUESTS {
        true => standing.remaining,
        false => thousands(standing.remaining).min(standing.limit),
    };
    [
        (limit, standing.limit.to_string()),
        (remaining, left.to_string()),
        (reset, date(now.saturating_add(standing.reset))),
    ]
}

/// To the nearest thousand, as tokens are recorded.
fn thousands(tokens: u64) -> u64 {
    tokens.saturating_add(500) / 1_000 * 1_000
}

/// RFC 3339, rounded up to the second: `2025-05-13T13:41:24Z`.
fn date(unix_ns: u64) -> String {
    let seconds = i64::try_from(unix_ns.div_ceil(SECOND_NS)).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string()
}

const SECOND_NS: u64 = 1_000_000_000;

const REQUESTS: [&str; 3] = [
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
];
const TOKENS: [&str; 3] = [
    "anthropic-ratelimit-tokens-limit",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
];
const INPUT: [&str; 3] = [
    "anthropic-ratelimit-input-tokens-limit",
    "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-input-tokens-reset",
];
const OUTPUT: [&str; 3] = [
    "anthropic-ratelimit-output-tokens-limit",
    "anthropic-ratelimit-output-tokens-remaining",
    "anthropic-ratelimit-output-tokens-reset",
];
