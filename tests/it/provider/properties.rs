//! Any bytes at all.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;
use tollgate::provider::{COMPATIBLE, OPENAI, Profile};
use tollgate::quota::Dimension;

use super::corpus::scan;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn requests_never_panic_and_unreadable_ones_are_charged(body in json_like()) {
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
    fn headers_and_errors_never_panic(
        values in prop::collection::vec(header_value(), 9),
        body in json_like(),
        status in 100_u16..1_000,
        now: u64,
        url in ".*",
    ) {
        let headers: HeaderMap = NAMES.iter().map(|n| HeaderName::from_static(n)).zip(values).collect();
        let status = StatusCode::from_u16(status).unwrap();
        let profile = Profile::find(&url);
        profile.limits(&headers);
        profile.classify(status, &headers, &body);
        let delay = profile.retry_delay(&headers, &body, now);
        prop_assert!(delay.is_none_or(|delay| delay <= tollgate::provider::LONGEST_DELAY));
    }

    #[test]
    fn a_scan_is_the_same_however_the_body_is_cut(
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

    /// The scanner against a parser that builds the whole tree.
    #[test]
    fn a_scan_of_valid_json_finds_what_a_parser_finds(value in json_value()) {
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

/// Bytes, and words that take a reader further than bytes would.
fn json_like() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        3 => prop::sample::select(WORDS).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let key =
        || prop::sample::select(&["usage", "prompt_tokens", "output_tokens", "x\"", "choices"][..]);
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
        prop::collection::vec(any::<u8>(), 0..30),
    ];
    bytes.prop_filter_map("a header value", |bytes| HeaderValue::from_bytes(&bytes).ok())
}

const NAMES: &[&str] = &[
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
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
    "try again in ",
    "6m0s",
    "\u{feff}",
    "é",
    "--",
];
