//! Limits and delays, out of headers.

use std::time::Duration;

use http::HeaderMap;
use tollgate::provider::{COMPATIBLE, LONGEST_DELAY, LimitReading, OPENAI, Profile};
use tollgate::quota::{Dimension, Window};

#[test]
fn limits_of_requests_and_tokens_are_read() {
    let headers = headers(&[
        ("x-ratelimit-limit-requests", "10000"),
        ("x-ratelimit-remaining-requests", "9999"),
        ("x-ratelimit-reset-requests", "6ms"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "1m0s"),
    ]);
    let [requests, tokens] = &OPENAI.limits(&headers)[..] else { panic!("two limits") };
    assert_eq!(requests.dimension, Dimension::Requests);
    assert_eq!((requests.limit, requests.remaining), (Some(10_000), Some(9_999)));
    assert_eq!(requests.reset, Some(Duration::from_millis(6)));
    assert_eq!(tokens.dimension, Dimension::Tokens);
    assert_eq!((tokens.limit, tokens.remaining), (Some(30_000), Some(0)));
    assert_eq!(tokens.reset, Some(Duration::from_secs(60)));
    assert_eq!((requests.window, tokens.window), (Window::MINUTE, Window::MINUTE));
}

#[test]
fn a_reset_that_only_fits_a_day_is_one_of_a_day() {
    for (limit, remaining, reset) in
        [("10000", "9999", "8.64s"), ("200", "197", "20m52.666s"), ("10000", "9985", "2m7.93s")]
    {
        let reading = requests(OPENAI, limit, remaining, reset).unwrap();
        assert_eq!(reading.window, Window::DAY, "{reset}");
    }
}

#[test]
fn what_is_unknown_or_garbage_is_none() {
    assert_eq!(requests(OPENAI, "-1", "-1", "-1s"), None);
    assert_eq!(requests(OPENAI, "0", "0", "0s"), None);
    assert_eq!(requests(OPENAI, "many", "", "soon"), None);
    let reading = requests(OPENAI, "5", "-3", "req_b176c7aa").unwrap();
    assert_eq!((reading.limit, reading.remaining, reading.reset), (Some(5), None, None));
    assert!(OPENAI.limits(&HeaderMap::new()).is_empty());
}

#[test]
fn plain_seconds_are_a_reset_for_compatible_servers_only() {
    assert_eq!(requests(OPENAI, "5", "4", "12").unwrap().reset, None);
    let reset = |text| requests(COMPATIBLE, "5", "4", text).unwrap().reset;
    assert_eq!(reset("12"), Some(Duration::from_secs(12)));
    assert_eq!(reset("1764000000"), None);
}

#[test]
fn a_delay_is_read_in_the_order_of_the_official_sdks() {
    let body = br#"{"error":{"message":"Rate limit reached. Please try again in 6m0s. Visit"}}"#;
    for (pairs, millis) in [
        (&[("retry-after-ms", "1500.5"), ("retry-after", "7")][..], 1_500),
        (&[("retry-after", "2.5")], 2_500),
        (&[("retry-after", "-3")], 0),
        (&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], 30_000),
        (&[("retry-after", "Wednesday, 21-Oct-26 07:28:30 GMT")], 30_000),
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
fn a_delay_is_read_out_of_the_text() {
    for (text, nanos) in [
        ("Please try again in 41.724s.", Some(41_724_000_000)),
        ("try again in 6ms", Some(6_000_000)),
        ("try again in 1h2m3s or so", Some(3_723_000_000_000)),
        ("try again in 20 seconds.", Some(20_000_000_000)),
        ("try again in a while; try again in 2s", Some(2_000_000_000)),
        ("try again in ", None),
        ("try again later", None),
        ("", None),
    ] {
        let delay = OPENAI.retry_delay(&HeaderMap::new(), text.as_bytes(), NOW);
        assert_eq!(delay, nanos.map(Duration::from_nanos), "{text}");
    }
}

#[test]
fn an_absurd_delay_is_cut_to_a_day() {
    for value in ["1e300", "99999999999", "inf", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let delay = OPENAI.retry_delay(&headers(&[("retry-after", value)]), b"", NOW);
        assert_eq!(delay, Some(LONGEST_DELAY), "{value}");
    }
    let nan = OPENAI.retry_delay(&headers(&[("retry-after", "NaN")]), b"", NOW);
    assert_eq!(nan, None);
}

fn requests(profile: Profile, limit: &str, remaining: &str, reset: &str) -> Option<LimitReading> {
    let headers = headers(&[
        ("x-ratelimit-limit-requests", limit),
        ("x-ratelimit-remaining-requests", remaining),
        ("x-ratelimit-reset-requests", reset),
    ]);
    profile.limits(&headers).into_iter().next()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

/// 2026-10-21 07:28:00 UTC.
const NOW: u64 = 1_792_567_680_000_000_000;
