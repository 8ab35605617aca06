//! Anthropic's rate-limit headers.

use std::time::Duration;

use jiff::Timestamp;

use crate::exceeded_limit::LimitKind;
use crate::limit_status::LimitStatus;
use crate::reply::Headers;

/// Returns the `anthropic-ratelimit-*` headers of a model.
///
/// If input and output are limited but all tokens are not, `-tokens` is the sum of both.
pub(super) fn limits(limits: &[LimitStatus], now: u64) -> Headers {
    let requests = LimitStatus::of(limits, LimitKind::RequestsPerMinute);
    let input = LimitStatus::of(limits, LimitKind::InputTokensPerMinute);
    let output = LimitStatus::of(limits, LimitKind::OutputTokensPerMinute);
    let tokens = LimitStatus::of(limits, LimitKind::TokensPerMinute);
    let tokens = tokens.or_else(|| Some(sum(input?, output?)));
    let stated = [(REQUESTS, requests), (TOKENS, tokens), (INPUT, input), (OUTPUT, output)];
    let stated = stated.into_iter().filter_map(|(names, status)| Some((names, status?)));
    stated.flat_map(|(names, status)| headers_of(names, status, now)).collect()
}

/// Returns `retry-after` in whole seconds, rounded up, so that a client that waits that long is
/// admitted.
pub(super) fn retry_headers(wait: Duration) -> Headers {
    vec![("retry-after", wait.as_nanos().div_ceil(SECOND_NS.into()).to_string())]
}

fn sum(input: LimitStatus, output: LimitStatus) -> LimitStatus {
    LimitStatus {
        kind: LimitKind::TokensPerMinute,
        limit: input.limit.saturating_add(output.limit),
        remaining: input.remaining.saturating_add(output.remaining),
        reset: input.reset.max(output.reset),
    }
}

fn headers_of(
    names: [&'static str; 3],
    status: LimitStatus,
    now: u64,
) -> [(&'static str, String); 3] {
    let [limit, remaining, reset] = names;
    let left = match names == REQUESTS {
        true => status.remaining,
        false => round_to_thousand(status.remaining).min(status.limit),
    };
    [
        (limit, status.limit.to_string()),
        (remaining, left.to_string()),
        (reset, format_date(now.saturating_add(status.reset))),
    ]
}

/// Rounds to the nearest thousand, as recorded.
fn round_to_thousand(tokens: u64) -> u64 {
    tokens.saturating_add(500) / 1_000 * 1_000
}

/// Formats a time as RFC 3339, rounded up to the second: `2025-05-13T13:41:24Z`.
fn format_date(unix_ns: u64) -> String {
    let seconds = i64::try_from(unix_ns.div_ceil(SECOND_NS)).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string()
}

/// The organization of all requests.
pub(super) const ORGANIZATION: &str = "00000000-0000-4000-8000-706163656c69";

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
