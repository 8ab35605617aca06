//! The used parts of subscriptions' windows in response headers.

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use paceline_limiter::Timestamp;
use paceline_provider::{ANTHROPIC, GEMINI, OPENAI, Profile};

const NOW: Timestamp = Timestamp::from_unix_secs(1_790_800_000);

fn windows(
    profile: Profile,
    headers: &[(&'static str, &str)],
) -> Vec<(String, f64, Option<Duration>)> {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
        .collect();
    let readings = profile.utilization(&headers, NOW).into_iter();
    readings.map(|reading| (reading.window, reading.used, reading.reset)).collect()
}

fn window(name: &str, used: f64, reset: Option<u64>) -> (String, f64, Option<Duration>) {
    (name.to_owned(), used, reset.map(Duration::from_secs))
}

/// The values of a subscription's responses on 2026-09-30 and of github.com/anomalyco/opencode/pull/49499.
#[test]
fn windows_of_anthropic_are_parts_of_one() {
    let read = windows(
        ANTHROPIC,
        &[
            ("anthropic-ratelimit-unified-status", "allowed"),
            ("anthropic-ratelimit-unified-5h-status", "allowed"),
            ("anthropic-ratelimit-unified-5h-utilization", "0.05"),
            ("anthropic-ratelimit-unified-5h-reset", "1790814600"),
            ("anthropic-ratelimit-unified-7d-utilization", "0.30"),
            ("anthropic-ratelimit-unified-7d-reset", "2026-10-04T05:25:11Z"),
            ("anthropic-ratelimit-unified-7d_oi-utilization", "1.02"),
            ("anthropic-ratelimit-unified-overage-utilization", "0.31"),
            ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
        ],
    );
    let until = Timestamp::from_unix_secs(1_791_091_511) - NOW;
    assert_eq!(
        read,
        [
            window("5h", 0.05, Some(14_600)),
            window("7d", 0.30, Some(until.as_secs())),
            window("7d_oi", 1.02, None),
        ]
    );
}

/// The values of the tests of openai/codex, codex-rs/codex-api/src/rate_limits.rs.
#[test]
fn windows_of_codex_are_percentages_named_by_length() {
    let read = windows(
        OPENAI,
        &[
            ("x-codex-primary-used-percent", "12.5"),
            ("x-codex-primary-window-minutes", "60"),
            ("x-codex-primary-reset-at", "1790800900"),
            ("x-codex-secondary-used-percent", "80"),
            ("x-codex-secondary-window-minutes", "1440"),
            ("x-codex-secondary-reset-after-seconds", "4400"),
            ("x-codex-bengalfox-primary-used-percent", "100"),
            ("x-codex-bengalfox-limit-name", "gpt-5.2-codex-sonic"),
        ],
    );
    assert_eq!(
        read,
        [
            window("1d", 0.8, Some(4_400)),
            window("1h", 0.125, Some(900)),
            window("primary_bengalfox", 1.0, None),
        ]
    );
    let unused = [("x-codex-primary-used-percent", "0"), ("x-codex-primary-window-minutes", "0")];
    assert_eq!(windows(OPENAI, &unused), []);
}

#[test]
fn resets_are_measured_from_the_date_of_the_response() {
    let read = windows(
        ANTHROPIC,
        &[
            ("date", "Wed, 30 Sep 2026 20:00:00 GMT"),
            ("anthropic-ratelimit-unified-5h-utilization", "0.5"),
            ("anthropic-ratelimit-unified-5h-reset", "1790798460"),
        ],
    );
    assert_eq!(read, [window("5h", 0.5, Some(60))]);
}

#[test]
fn values_that_are_no_utilization_are_ignored() {
    for value in ["", "-0.1", "NaN", "inf", "half", "1e9"] {
        let headers = [("anthropic-ratelimit-unified-5h-utilization", value)];
        assert_eq!(windows(ANTHROPIC, &headers), [], "{value}");
    }
    // A reset in the far future is none.
    let headers = [
        ("anthropic-ratelimit-unified-5h-utilization", "0.5"),
        ("anthropic-ratelimit-unified-5h-reset", "99999999999"),
    ];
    assert_eq!(windows(ANTHROPIC, &headers), [window("5h", 0.5, None)]);
    assert_eq!(windows(GEMINI, &headers), []);
}
