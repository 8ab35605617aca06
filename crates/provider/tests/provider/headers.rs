//! Limits read from headers.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use paceline_limiter::quota::{Dimension, Window};
use paceline_provider::{
    ANTHROPIC, AZURE, CEREBRAS, COMPATIBLE, FIREWORKS, GROQ, LimitReading, MISTRAL, MOONSHOT,
    NEBIUS, OPENAI, OPENROUTER, Profile, SAMBANOVA, TOGETHER,
};

#[test]
fn limits_of_requests_tokens_and_images_are_read() {
    let headers = headers(&[
        ("x-ratelimit-limit-requests", "10000"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-limit-input-images", "50000"),
        ("x-ratelimit-limit-project-tokens", "20000"),
        ("x-ratelimit-remaining-requests", "9999"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-remaining-input-images", "49999"),
        ("x-ratelimit-remaining-project-tokens", "19000"),
        ("x-ratelimit-reset-requests", "6ms"),
        ("x-ratelimit-reset-tokens", "1m0s"),
        ("x-ratelimit-reset-input-images", "1ms"),
    ]);
    assert_eq!(
        readings_of(OPENAI, &headers),
        [
            "requests/60s: 9999 of 10000, full in 6ms",
            "tokens/60s: 0 of 30000, full in 60s",
            "input_images/60s: 49999 of 50000, full in 1ms",
            "project_tokens/60s: 19000 of 20000",
        ]
    );
}

#[test]
fn openai_window_is_a_day_for_numbers_of_a_daily_bucket() {
    for (limit, remaining, reset, window) in [
        ("10000", "9999", "8.64s", Window::DAY),
        // Most of one request is already refilled.
        ("10000", "9999", "1.2s", Window::DAY),
        ("200", "197", "20m52.666s", Window::DAY),
        ("10000", "9985", "2m7.93s", Window::DAY),
        ("200", "0", "24h0m0s", Window::DAY),
        // Consistent with neither a bucket per minute nor per day.
        ("60000", "59000", "45s", Window::MINUTE),
        ("200", "0", "1h0m0s", Window::MINUTE),
        ("10000", "9994", "1m0s", Window::MINUTE),
        ("3", "0", "1m0s", Window::MINUTE),
        ("3", "2", "20s", Window::MINUTE),
        ("30000", "29999", "2ms", Window::MINUTE),
        ("5", "5", "0s", Window::MINUTE),
    ] {
        let reading = request_limit(OPENAI, limit, remaining, reset).unwrap();
        assert_eq!(reading.window, window, "{reset}");
    }
}

/// A fixed window that ends in 45 s is not consistent with a daily bucket.
#[test]
fn limit_without_stated_window_is_per_minute_for_every_profile() {
    let headers = headers(&[
        ("x-ratelimit-limit-tokens", "60000"),
        ("x-ratelimit-remaining-tokens", "59000"),
        ("x-ratelimit-reset-tokens", "45s"),
    ]);
    for profile in Profile::all() {
        for reading in profile.limits(&headers) {
            assert_eq!(reading.window, Window::MINUTE, "{}", profile.name());
        }
    }
    assert_eq!(readings_of(OPENAI, &headers), ["tokens/60s: 59000 of 60000, full in 45s"]);
}

#[test]
fn azure_resets_and_windows_are_read() {
    let azure = |limit, remaining, reset, period| {
        let headers = headers(&[
            ("x-ratelimit-limit-tokens", limit),
            ("x-ratelimit-remaining-tokens", remaining),
            ("x-ratelimit-reset-tokens", reset),
            ("x-ratelimit-renewalperiod-tokens", period),
        ]);
        readings_of(AZURE, &headers).join("")
    };
    // Milliseconds if seconds are impossible (as recorded), else seconds (as documented).
    assert_eq!(azure("120", "119", "500", "60"), "tokens/60s: 119 of 120, full in 500ms");
    assert_eq!(azure("120000", "119986", "7", "60"), "tokens/60s: 119986 of 120000, full in 7ms");
    assert_eq!(azure("120000", "60000", "30", "60"), "tokens/60s: 60000 of 120000, full in 30s");
    assert_eq!(azure("120000", "0", "99999999", "60"), "tokens/60s: 0 of 120000");
    assert_eq!(azure("1000", "900", "1", "10"), "tokens/10s: 900 of 1000, full in 1s");
    // More was used than the limit.
    assert_eq!(azure("1000", "-250", "60", "soon"), "tokens/60s: 0 of 1000, full in 60s");
    assert_eq!(azure("-1", "-1", "0", "60"), "");
    assert_eq!(azure("1000", "-1", "0", "0"), "tokens/60s: of 1000, full in 0ns");
    let alone = headers(&[("x-ratelimit-remaining-tokens", "119984")]);
    assert_eq!(readings_of(AZURE, &alone), ["tokens/60s: 119984"]);
}

#[test]
fn anthropic_limits_of_both_directions_are_rounded() {
    let mut headers = headers(&[
        ("date", "Sat, 15 Mar 2025 12:57:59 GMT"),
        ("anthropic-ratelimit-requests-limit", "4000"),
        ("anthropic-ratelimit-requests-remaining", "3999"),
        ("anthropic-ratelimit-requests-reset", "2025-03-15T12:57:58Z"),
        ("anthropic-ratelimit-input-tokens-limit", "200000"),
        ("anthropic-ratelimit-input-tokens-remaining", "126000"),
        ("anthropic-ratelimit-input-tokens-reset", "2025-03-15T12:58:20Z"),
        ("anthropic-ratelimit-output-tokens-limit", "80000"),
        ("anthropic-ratelimit-output-tokens-remaining", "59000"),
        ("anthropic-ratelimit-output-tokens-reset", "2025-03-15T13:58:13.5+01:00"),
    ]);
    assert_eq!(
        readings_of(ANTHROPIC, &headers),
        [
            "requests/60s: 3999 of 4000, full in 0ns",
            "input_tokens/60s: 126000 of 200000, full in 21s",
            "output_tokens/60s: 59000 of 80000, full in 14.5s",
        ]
    );
    let granularity: Vec<_> = ANTHROPIC.limits(&headers).iter().map(|l| l.granularity).collect();
    assert_eq!(granularity, [1, 1_000, 1_000]);
    // Without a date, the distance to a time is not known.
    headers.remove("date");
    assert!(ANTHROPIC.limits(&headers).iter().all(|limit| limit.reset.is_none()));
    headers.insert("x-ratelimit-limit-requests", HeaderValue::from_static("7"));
    assert_eq!(ANTHROPIC.limits(&headers).len(), 3);
}

#[test]
fn groq_request_limit_is_per_day() {
    let headers = headers(&[
        ("x-ratelimit-limit-requests", "14400"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-remaining-requests", "14370"),
        ("x-ratelimit-remaining-tokens", "29869"),
        ("x-ratelimit-reset-requests", "2m59.56s"),
        ("x-ratelimit-reset-tokens", "261ms"),
    ]);
    assert_eq!(
        readings_of(GROQ, &headers),
        [
            "requests/86400s: 14370 of 14400, full in 179.56s",
            "tokens/60s: 29869 of 30000, full in 261ms",
        ]
    );
}

#[test]
fn header_names_may_state_the_window() {
    let mistral = headers(&[
        ("x-ratelimit-limit-req-10-second", "60"),
        ("x-ratelimit-remaining-req-10-second", "59"),
        ("x-ratelimit-limit-tokens-minute", "2000000"),
        ("x-ratelimit-remaining-tokens-minute", "1999893"),
        ("x-ratelimit-limit-tokens-month", "10000000000"),
        ("x-ratelimit-remaining-tokens-month", "9999999893"),
        ("x-ratelimit-tokens-query-cost", "107"),
    ]);
    assert_eq!(
        readings_of(MISTRAL, &mistral),
        [
            "requests/10s: 59 of 60",
            "tokens/60s: 1999893 of 2000000",
            "tokens/2592000s: 9999999893 of 10000000000",
        ]
    );
    // The example of inference-docs.cerebras.ai/support/rate-limits.
    let cerebras = headers(&[
        ("x-ratelimit-limit-requests-day", "1000000000"),
        ("x-ratelimit-limit-tokens-minute", "1000000000"),
        ("x-ratelimit-remaining-requests-day", "999997455"),
        ("x-ratelimit-remaining-tokens-minute", "999998298"),
        ("x-ratelimit-reset-requests-day", "33011.382867097855"),
        ("x-ratelimit-reset-tokens-minute", "11.382867097854614"),
    ]);
    let read = [
        "requests/86400s: 999997455 of 1000000000, full in 33011.382867098s",
        "tokens/60s: 999998298 of 1000000000, full in 11.382867098s",
    ];
    assert_eq!(readings_of(CEREBRAS, &cerebras), read);
    assert_eq!(readings_of(COMPATIBLE, &cerebras), read);
}

/// The names are those of docs.sambanova.ai/docs/en/models/rate-limits, the numbers those of its developer tier.
#[test]
fn sambanova_states_requests_per_minute_and_per_day() {
    let headers = headers(&[
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-limit-requests-day", "12000"),
        ("x-ratelimit-remaining-requests-day", "11999"),
    ]);
    let read = ["requests/60s: 59 of 60", "requests/86400s: 11999 of 12000"];
    assert_eq!(readings_of(SAMBANOVA, &headers), read);
}

/// "Your current effective rate limits (described in tokens per second) are in the response headers.
/// Enforcement uses TPM": docs.fireworks.ai/serverless/rate-limits. Its starting limits are 60k and 600 per second.
#[test]
fn fireworks_tokens_per_second_are_no_limits_per_minute() {
    let headers = headers(&[
        ("x-ratelimit-limit-tokens-prompt", "60000"),
        ("x-ratelimit-limit-tokens-generated", "600"),
    ]);
    assert_eq!(readings_of(FIREWORKS, &headers), [""; 0]);
    let quota = FIREWORKS.quotas()[0].quota().unwrap();
    let limits: Vec<_> = quota.limits().iter().map(|l| (l.dimension(), l.amount())).collect();
    let started = [(&Dimension::InputTokens, 60_000 * 60), (&Dimension::OutputTokens, 600 * 60)];
    assert_eq!(limits, started);
}

/// The limits of an account's first 15 minutes and the names of what remains: docs.tokenfactory.nebius.com, "Rate
/// limits & scaling". The names of the limits are OpenAI's.
#[test]
fn nebius_states_limits_per_minute_that_grow() {
    for (requests, tokens) in [("60", "400000"), ("72", "480000")] {
        let headers = headers(&[
            ("x-ratelimit-limit-requests", requests),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-limit-tokens", tokens),
            ("x-ratelimit-remaining-tokens", "399000"),
        ]);
        let read =
            [format!("requests/60s: 59 of {requests}"), format!("tokens/60s: 399000 of {tokens}")];
        assert_eq!(readings_of(NEBIUS, &headers), read);
    }
}

#[test]
fn header_names_may_omit_dimension_and_window() {
    let plain = |profile, reset| {
        let headers = headers(&[
            ("date", "Wed, 21 Oct 2026 07:28:00 GMT"),
            ("x-ratelimit-limit", "20"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", reset),
        ]);
        readings_of(profile, &headers).join("")
    };
    assert_eq!(plain(TOGETHER, "2"), "requests/1s: 0 of 20, full in 2s");
    assert_eq!(plain(MOONSHOT, "30"), "requests/60s: 0 of 20, full in 30s");
    // 30 seconds and 17 hours after the date, in seconds and in milliseconds.
    let minute = "requests/60s: 0 of 20, full in 30s";
    assert_eq!(plain(OPENROUTER, "1792567710"), minute);
    assert_eq!(plain(OPENROUTER, "1792567710000"), minute);
    let day = "requests/86400s: 0 of 20, full in 59520s";
    assert_eq!(plain(OPENROUTER, "1792627200000"), day);
    assert_eq!(plain(COMPATIBLE, "2026-10-21T07:28:30Z"), minute);
    // A long reset doesn't indicate a long window.
    assert_eq!(plain(COMPATIBLE, "120"), "requests/60s: 0 of 20, full in 120s");
    assert_eq!(plain(COMPATIBLE, "7200"), "requests/60s: 0 of 20, full in 7200s");
    let draft = headers(&[("ratelimit-limit", "5"), ("ratelimit-remaining", "4")]);
    assert_eq!(readings_of(COMPATIBLE, &draft), ["requests/60s: 4 of 5"]);
}

#[test]
fn reset_of_a_bucket_and_of_a_window_are_distinguished() {
    // 9,999 of 10,000 left and 50 s to wait: a fixed minute, not a daily bucket.
    assert_eq!(request_limit(COMPATIBLE, "10000", "9999", "50").unwrap().window, Window::MINUTE);
    assert_eq!(request_limit(OPENAI, "10000", "9994", "50s").unwrap().window, Window::DAY);
}

#[test]
fn unknown_or_invalid_values_are_none() {
    for profile in Profile::all() {
        for (limit, remaining, reset) in [
            ("-1", "-1", "-1s"),
            ("0", "0", "0s"),
            ("-1", "-1", "0"),
            ("many", "", "soon"),
            ("1e9", "99, 98", "1h1h1h?"),
            ("99999999999999999999999999", "18446744073709551615", "1s"),
            ("9223372036854775807", "9223372036854775806", "1s"),
        ] {
            assert_eq!(
                request_limit(*profile, limit, remaining, reset),
                None,
                "{limit} {profile:?}"
            );
        }
        assert!(profile.limits(&HeaderMap::new()).is_empty());
    }
    let reading = request_limit(OPENAI, "5", "-3", "req_b176c7aa").unwrap();
    assert_eq!((reading.limit, reading.remaining, reading.reset), (Some(5), None, None));
    for reset in ["99999999999999999h", "-3", "NaN", "inf", "1e300", "1792567710000000", ""] {
        assert_eq!(request_limit(OPENAI, "5", "4", reset).unwrap().reset, None, "{reset}");
    }
}

#[test]
fn contradictory_values_are_none() {
    // The remainder exceeds the limit.
    assert_eq!(request_limit(OPENAI, "5", "6", "0s").unwrap().remaining, None);
    let mut headers =
        headers(&[("x-ratelimit-limit-requests", "10"), ("x-ratelimit-remaining-requests", "9")]);
    let name = HeaderName::from_static("x-ratelimit-limit-requests");
    headers.append(&name, HeaderValue::from_static("10"));
    assert_eq!(readings_of(OPENAI, &headers), ["requests/60s: 9 of 10"]);
    headers.append(&name, HeaderValue::from_static("20"));
    assert_eq!(readings_of(OPENAI, &headers), ["requests/60s: 9"]);
}

#[test]
fn invalid_value_beside_a_valid_one_is_ignored() {
    let mut headers =
        headers(&[("x-ratelimit-limit-requests", "10"), ("x-ratelimit-remaining-requests", "9")]);
    for garbage in [&b"\xff"[..], b"", b"req_b176c7aa266e48aa8eff647b6b309bb8"] {
        let name = HeaderName::from_static("x-ratelimit-limit-requests");
        headers.append(name, HeaderValue::from_bytes(garbage).unwrap());
        assert_eq!(readings_of(OPENAI, &headers), ["requests/60s: 9 of 10"]);
    }
}

#[test]
fn reset_without_unit_is_in_seconds() {
    let reset = |text| request_limit(COMPATIBLE, "5", "4", text).unwrap().reset;
    assert_eq!(reset("12"), Some(Duration::from_secs(12)));
    assert_eq!(reset("59.5"), Some(Duration::from_millis(59_500)));
    // A time without a date header.
    assert_eq!(reset("1764000000"), None);
}

/// Returns the readings as `dimension/window: remaining of limit, full in reset`.
fn readings_of(profile: Profile, headers: &HeaderMap) -> Vec<String> {
    let number = |n: Option<u64>, before: &str| n.map_or(String::new(), |n| format!("{before}{n}"));
    let line = |l: &LimitReading| {
        let window = l.window.as_duration().as_secs();
        let reset = l.reset.map_or(String::new(), |reset| format!(", full in {reset:?}"));
        let (left, limit) = (number(l.remaining, " "), number(l.limit, " of "));
        format!("{}/{window}s:{left}{limit}{reset}", l.dimension)
    };
    profile.limits(headers).iter().map(line).collect()
}

fn request_limit(
    profile: Profile,
    limit: &str,
    remaining: &str,
    reset: &str,
) -> Option<LimitReading> {
    let headers = headers(&[
        ("x-ratelimit-limit-requests", limit),
        ("x-ratelimit-remaining-requests", remaining),
        ("x-ratelimit-reset-requests", reset),
        ("anthropic-ratelimit-requests-limit", limit),
        ("anthropic-ratelimit-requests-remaining", remaining),
        ("anthropic-ratelimit-requests-reset", reset),
        ("x-ratelimit-limit", limit),
        ("x-ratelimit-remaining", remaining),
        ("x-ratelimit-reset", reset),
    ]);
    let readings = profile.limits(&headers);
    readings.into_iter().find(|reading| reading.dimension == Dimension::Requests)
}

pub(super) fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}
