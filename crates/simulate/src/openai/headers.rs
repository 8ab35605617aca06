//! OpenAI's rate-limit headers.

use std::fmt::Write;
use std::time::Duration;

use crate::exceeded_limit::LimitKind;
use crate::limit_status::LimitStatus;
use crate::reply::Headers;

/// Returns the `x-ratelimit-*` headers of a model.
///
/// The headers of requests report the limit per minute, or the limit per day if there is none per minute.
pub(super) fn limits(limits: &[LimitStatus]) -> Headers {
    let requests = LimitStatus::of(limits, LimitKind::RequestsPerMinute)
        .or_else(|| LimitStatus::of(limits, LimitKind::RequestsPerDay));
    let tokens = LimitStatus::of(limits, LimitKind::TokensPerMinute);
    let mut headers = Headers::new();
    headers.extend(requests.into_iter().flat_map(|status| headers_of(REQUESTS, status)));
    headers.extend(tokens.into_iter().flat_map(|status| headers_of(TOKENS, status)));
    headers
}

/// Returns `retry-after` in whole seconds and `retry-after-ms`, both rounded up, so that a client
/// that waits that long is admitted.
pub(super) fn retry_headers(wait: Duration) -> Headers {
    let seconds = wait.as_nanos().div_ceil(1_000_000_000);
    vec![("retry-after", seconds.to_string()), ("retry-after-ms", millis(wait).to_string())]
}

/// Formats a duration as Go does, rounded up to the millisecond: `0s`, `12ms`, `13.065s`, `6m0s`.
pub(super) fn go_duration(duration: Duration) -> String {
    let millis = millis(duration);
    let (total_seconds, fraction) = (millis / 1_000, millis % 1_000);
    if total_seconds == 0 && fraction > 0 {
        return format!("{fraction}ms");
    }
    let mut text = String::new();
    let (hours, minutes) = (total_seconds / 3_600, total_seconds / 60 % 60);
    if hours > 0 {
        let _ = write!(text, "{hours}h");
    }
    if total_seconds >= 60 {
        let _ = write!(text, "{minutes}m");
    }
    let _ = write!(text, "{}", total_seconds % 60);
    if fraction > 0 {
        text.push_str(format!(".{fraction:03}").trim_end_matches('0'));
    }
    text + "s"
}

fn headers_of(names: [&'static str; 3], status: LimitStatus) -> [(&'static str, String); 3] {
    let values = [
        status.limit.to_string(),
        status.remaining.to_string(),
        go_duration(Duration::from_nanos(status.reset)),
    ];
    let mut values = values.into_iter();
    names.map(|name| (name, values.next().unwrap_or_default()))
}

fn millis(duration: Duration) -> u128 {
    duration.as_nanos().div_ceil(1_000_000)
}

/// The organization of all requests.
pub(super) const ORGANIZATION: &str = "org-paceline";

const REQUESTS: [&str; 3] =
    ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"];
const TOKENS: [&str; 3] =
    ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_go_format() {
        let printed = |ms| go_duration(Duration::from_millis(ms));
        assert_eq!(printed(0), "0s");
        assert_eq!(printed(12), "12ms");
        assert_eq!(printed(1_000), "1s");
        assert_eq!(printed(13_065), "13.065s");
        assert_eq!(printed(41_700), "41.7s");
        assert_eq!(printed(179_560), "2m59.56s");
        assert_eq!(printed(360_000), "6m0s");
        assert_eq!(printed(86_400_000), "24h0m0s");
    }

    #[test]
    fn durations_are_rounded_up() {
        assert_eq!(go_duration(Duration::from_nanos(1)), "1ms");
        assert_eq!(go_duration(Duration::from_nanos(999_000_001)), "1s");
        assert_eq!(retry_headers(Duration::from_nanos(1_000_000_001))[0].1, "2");
    }
}
