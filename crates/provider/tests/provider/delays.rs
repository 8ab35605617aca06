//! Delays before the next attempt.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use paceline_limiter::Timestamp;
use paceline_provider::{ANTHROPIC, AZURE, Class, GEMINI, LONGEST_DELAY, OPENAI, OPENROUTER};

use super::headers::headers;

#[test]
fn delay_is_read_in_order_of_official_sdks() {
    let body = br#"{"error":{"message":"Rate limit reached. Please try again in 6m0s. Visit"}}"#;
    for (pairs, millis) in [
        (&[("retry-after-ms", "1500.5"), ("retry-after", "7")][..], 1_500),
        (&[("retry-after-ms", "soon"), ("retry-after", "7")], 7_000),
        (&[("retry-after", "2.5")], 2_500),
        (&[("retry-after", "30s")], 30_000),
        (&[("retry-after", "1m30s")], 90_000),
        (&[("retry-after", "PT30S")], 30_000),
        (&[("retry-after", "-3")], 360_000),
        (&[("retry-after-ms", "-3")], 360_000),
        (&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], 30_000),
        (&[("retry-after", "Wednesday, 21-Oct-26 07:28:30 GMT")], 30_000),
        (&[("retry-after", "Wed Oct 21 07:28:30 2026")], 30_000),
        (&[("retry-after", "Wed Oct 21 07:28:30 2026")], 30_000),
        (&[("retry-after", "Wed, 21 Oct 2020 07:28:30 GMT")], 0),
        (&[("retry-after", "soon")], 360_000),
        (&[], 360_000),
    ] {
        let delay = OPENAI.retry_delay(&headers(pairs), body, NOW).unwrap();
        assert_eq!(delay.as_millis(), millis, "{pairs:?}");
    }
}

#[test]
fn delay_to_a_time_is_measured_from_response_date() {
    let headers = headers(&[
        ("date", "Wed, 21 Oct 2026 07:20:00 GMT"),
        ("retry-after", "Wed, 21 Oct 2026 07:20:05 GMT"),
    ]);
    assert_eq!(OPENAI.retry_delay(&headers, b"", NOW), Some(Duration::from_secs(5)));
}

#[test]
fn delay_is_read_from_error_text() {
    for (text, nanos) in [
        ("Please try again in 41.724s.", Some(41_724_000_000)),
        ("try again in 6ms", Some(6_000_000)),
        ("try again in 1h2m3s or so", Some(3_723_000_000_000)),
        ("try again in 20 seconds.", Some(20_000_000_000)),
        ("try again in a while; try again in 2s", Some(2_000_000_000)),
        ("Please retry after 6 seconds. Please go here", Some(6_000_000_000)),
        ("Please retry after 1 second.", Some(1_000_000_000)),
        ("Please retry in 34.074824224s.", Some(34_074_824_224)),
        ("try again in ", None),
        ("try again in -5s", None),
        ("try again later", None),
        ("", None),
    ] {
        let delay = AZURE.retry_delay(&HeaderMap::new(), text.as_bytes(), NOW);
        assert_eq!(delay, nanos.map(Duration::from_nanos), "{text}");
    }
}

#[test]
fn delay_is_read_from_error_details() {
    for (body, millis) in [
        (
            r#"[{"error":{"code":429,"message":"Please retry in 9s.","details":[
                {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay": "34.5s"}]}}]"#,
            Some(34_500),
        ),
        (
            r#"{"error":{"message":"Rate limit exceeded: free-models-per-min.","metadata":{"headers":
                {"X-RateLimit-Limit":"20","X-RateLimit-Reset":"1792567710000"}}}}"#,
            Some(30_000),
        ),
        (r#"{"error":"Model x is currently loading","estimated_time":20.5}"#, Some(20_500)),
        (r#"{"error":{"message":"the prompt said \"retryDelay\":\"34.5s\""}}"#, None),
        (r#"{"error":{"details":[{"retryDelay":"-5s"},{"retryDelay":null}]}}"#, None),
    ] {
        let delay = GEMINI.retry_delay(&HeaderMap::new(), body.as_bytes(), NOW);
        assert_eq!(delay.map(|delay| delay.as_millis()), millis, "{body}");
    }
}

#[test]
fn exhausted_limit_states_reset() {
    let delay = |remaining, reset| {
        let headers =
            headers(&[("x-ratelimit-remaining", remaining), ("x-ratelimit-reset", reset)]);
        OPENROUTER.retry_delay(&headers, b"", NOW)
    };
    assert_eq!(delay("0", "1792567710000"), Some(Duration::from_secs(30)));
    assert_eq!(delay("0", "1792567710"), Some(Duration::from_secs(30)));
    assert_eq!(delay("3", "1792567710"), None);
    assert_eq!(delay("0", "soon"), None);
}

#[test]
fn excessive_delay_is_capped_at_a_day() {
    for value in ["1e300", "99999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let delay = OPENAI.retry_delay(&headers(&[("retry-after", value)]), b"", NOW);
        assert_eq!(delay, Some(LONGEST_DELAY), "{value}");
    }
    for value in ["NaN", "inf"] {
        let garbled = OPENAI.retry_delay(&headers(&[("retry-after", value)]), b"", NOW);
        assert_eq!(garbled, None, "{value}");
    }
}

#[test]
fn delay_header_on_success_is_not_a_refusal() {
    let headers = headers(&[("retry-after", "59")]);
    assert_eq!(ANTHROPIC.classify(StatusCode::OK, &headers, b""), Class::Ok);
}

/// 2026-10-21 07:28:00 UTC.
const NOW: Timestamp = Timestamp::from_unix_secs(1_792_567_680);
