//! Property tests with arbitrary bytes.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use paceline_limiter::Timestamp;
use paceline_limiter::quota::Dimension;
use paceline_provider::{
    ApiError, COMPATIBLE, DASHSCOPE, GEMINI, LONGEST_DELAY, OPENAI, OPENROUTER, Profile, Refusal,
    RefusalKind,
};
use paceline_testing::full::full_or;
use proptest::prelude::*;

use super::recordings::scan;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(full_or(4_000, 400)))]

    #[test]
    fn request_of_any_bytes_never_panics_and_has_a_charge(body in json_like()) {
        for profile in [OPENAI, COMPATIBLE] {
            for path in ["/v1/chat/completions", "/v1/responses", "/v1/embeddings", ""] {
                let estimate = profile.read_request(path, &body);
                let size = (body.len() as u64).div_ceil(4);
                prop_assert!(
                    estimate.exact || estimate.cost.amount(&Dimension::Tokens) == size
                        || body.starts_with(b"--")
                );
            }
        }
    }

    #[test]
    fn strict_reading_never_panics_and_estimates_the_same(
        body in json_like(),
        path in "(/|/v1|//|%2[fF]|%|;|/models/m|:generateContent|/files|/deployments/d|[ -~]){0,6}",
        kind in "(application/json|multipart/form-data|)(; ?(boundary|charset)=(\"?b\"?|-|utf-8|\\\\)){0,2}",
    ) {
        let mut headers = HeaderMap::new();
        headers.extend(HeaderValue::try_from(kind).map(|kind| (CONTENT_TYPE, kind)));
        for body in [body.clone(), [&b"--b\r\n"[..], &body, b"\r\n--b--"].concat()] {
            let (strict, unreadable) = OPENAI.read_request_strictly(&path, &headers, &body);
            let estimate = OPENAI.read_request(&path, &body);
            if unreadable.is_some() || estimate.exact {
                prop_assert_eq!(strict, estimate);
            }
        }
    }

    #[test]
    fn headers_and_errors_of_any_bytes_never_panic(
        values in prop::collection::vec(header_value(), NAMES.len()),
        body in json_like(),
        status in 100_u16..1_000,
        now: u64,
    ) {
        let names = NAMES.iter().map(|name| HeaderName::from_static(name));
        let headers: HeaderMap = names.zip(values).collect();
        let status = StatusCode::from_u16(status).unwrap();
        for profile in Profile::all() {
            for reading in profile.limits(&headers) {
                prop_assert!(reading.limit.is_some() || reading.remaining.is_some());
                prop_assert!(reading.limit != Some(0) && reading.granularity > 0);
                let is_within = reading.limit.zip(reading.remaining).is_none_or(|(l, r)| r <= l);
                prop_assert!(is_within);
                let year = Duration::from_secs(366 * 86_400);
                prop_assert!(reading.reset.is_none_or(|reset| reset <= year));
            }
            prop_assert_eq!(profile.limits(&headers), profile.limits(&headers));
        }
        // Profiles with rules of their own for errors.
        for profile in [OPENAI, GEMINI, DASHSCOPE, OPENROUTER] {
            profile.classify(status, &headers, &body);
            let delay = profile.retry_delay(&headers, &body, Timestamp::from_nanos(now));
            prop_assert!(delay.is_none_or(|delay| delay <= LONGEST_DELAY));
            if let Some(refusal) = profile.refusal(status, &headers, &body, Timestamp::from_nanos(now)) {
                prop_assert!(refusal.delay.is_none_or(|delay| delay <= Refusal::LONGEST));
                prop_assert!(refusal.until.is_none() || refusal.delay.is_some());
                prop_assert!(refusal.kind != RefusalKind::Request || refusal.delay.is_none());
            }
        }
        if let Some(error) = ApiError::read(&body) {
            OPENAI.classify_in_band(&error);
        }
    }

    #[test]
    fn invalid_limit_headers_have_no_reading(
        limit in invalid_number(),
        remaining in invalid_number(),
        reset in invalid_number(),
        suffix in prop::sample::select(&["", "-requests", "-tokens", "-tokens-minute"][..]),
    ) {
        let part = |part, value| {
            let name = format!("x-ratelimit-{part}{suffix}");
            (HeaderName::try_from(name).unwrap(), value)
        };
        let parts = [part("limit", limit), part("remaining", remaining), part("reset", reset)];
        let headers: HeaderMap = parts.into_iter().collect();
        for profile in Profile::all() {
            prop_assert!(profile.limits(&headers).is_empty());
        }
    }

    #[test]
    fn scan_is_independent_of_chunk_boundaries(
        body in json_like(),
        cuts in prop::collection::vec(1_usize..40, 1..20),
        stream: bool,
    ) {
        let content_type = if stream { "text/event-stream" } else { "application/json" };
        let whole = scan(OPENAI, content_type, &body, || usize::MAX);
        let mut cuts = cuts.into_iter().cycle();
        let cut = scan(OPENAI, content_type, &body, || cuts.next().unwrap());
        prop_assert_eq!(&cut, &whole);
        prop_assert_eq!(&scan(OPENAI, content_type, &body, || 1), &whole);
    }

    /// Compares the scanner with a parser that builds the whole tree.
    #[test]
    fn scanner_agrees_with_parser_on_valid_json(value in json_value()) {
        let body = serde_json::to_vec(&value).unwrap();
        let usage = scan(OPENAI, "", &body, || 7).usage;
        let count = |value: &serde_json::Value, a: &str, b: &str| {
            value["usage"][a].as_u64().or(value["usage"][b].as_u64())
        };
        let input = count(&value, "prompt_tokens", "input_tokens");
        let output = count(&value, "completion_tokens", "output_tokens");
        let expected = (input.is_some() || output.is_some())
            .then(|| (input.unwrap_or(0), output.unwrap_or(0)));
        prop_assert_eq!(usage.map(|usage| (usage.input, usage.output)), expected);
    }
}

/// Generates bytes and words that reach deeper states than random bytes.
fn json_like() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        3 => prop::sample::select(WORDS).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let key =
        || prop::sample::select(&["usage", "prompt_tokens", "output_tokens", "x\"", "data"][..]);
    let leaf = prop_oneof![
        any::<u32>().prop_map(serde_json::Value::from),
        ".{0,9}".prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    let tree = leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            3 => prop::collection::hash_map(key(), inner.clone(), 0..5)
                .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
            1 => prop::collection::vec(inner, 0..4).prop_map(serde_json::Value::Array),
        ]
    });
    prop::collection::hash_map(key(), tree, 0..5)
        .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

fn header_value() -> impl Strategy<Value = HeaderValue> {
    let bytes = prop_oneof![
        "[0-9.e+-]{0,12}(ns|us|µs|ms|s|m|h|d)?".prop_map(String::into_bytes),
        (0_u64..300, 0_u64..300).prop_map(|(a, b)| (a * b).to_string().into_bytes()),
        "20[0-9]{2}-0[0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:00Z".prop_map(String::into_bytes),
        "Wed, [0-3][0-9] Oct 20[0-9]{2} 07:28:30 GMT".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..30),
    ];
    bytes.prop_filter_map("a header value", |bytes| HeaderValue::from_bytes(&bytes).ok())
}

/// Generates negative numbers, zero, numbers beyond a u64, and text.
fn invalid_number() -> impl Strategy<Value = HeaderValue> {
    let text = prop_oneof!["-[0-9]{1,20}", "0{1,9}", "[1-9][0-9]{19,60}", "[a-z_]{0,9}[0-9]?x"];
    text.prop_map(|text| HeaderValue::from_str(&text).unwrap())
}

const NAMES: &[&str] = &[
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-renewalperiod-requests",
    "x-ratelimit-limit-tokens-minute",
    "x-ratelimit-remaining-tokens-minute",
    "x-ratelimit-reset-tokens-minute",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "anthropic-ratelimit-input-tokens-limit",
    "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-input-tokens-reset",
    "date",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "x-amzn-errortype",
];

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    "\\u00e9",
    "\\ud83d",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    " ",
    "data:",
    "data: ",
    ": comment",
    "event: error\n",
    "[DONE]",
    "1",
    "23",
    "4.5",
    "-",
    "e9",
    "null",
    "true",
    "\"usage\":",
    "\"usage\":{",
    "\"prompt_tokens\":",
    "\"completion_tokens\":7",
    "\"error\":{",
    "\"error\":",
    "\"message\":\"",
    "\"code\":429",
    "\"type\":\"error\"",
    "\"response\":{",
    "\"content\":",
    "\"messages\":[",
    "\"input\":",
    "\"tools\":[",
    "\"max_tokens\":",
    "{\"usage\":{\"prompt_tokens\":5}}",
    "\"quotaId\":\"",
    "\"retryDelay\":\"",
    "\"X-RateLimit-Reset\":",
    "\"__type\":\"",
    "PerDay",
    "per day",
    "1792567710000",
    "try again in ",
    "retry after ",
    "6m0s",
    "\u{feff}",
    "é",
    "--",
];
