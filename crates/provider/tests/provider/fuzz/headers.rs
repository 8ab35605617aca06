//! Headers of any content are read by every profile without a panic, and delays stay bounded.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use paceline_limiter::Timestamp;
use paceline_provider::{LONGEST_DELAY, Profile};

use paceline_testing::fuzz::fuzz;

#[test]
fn response_headers_are_read_without_panic() {
    let seeds: Vec<_> = SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    fuzz("headers", &seeds, |input| {
        let headers = headers(input);
        for profile in Profile::all() {
            let _ = profile.limits(&headers);
            let _ = profile.charged_in_head(&headers);
            let _ = profile.classify(StatusCode::TOO_MANY_REQUESTS, &headers, b"");
            for now in [Timestamp::UNIX_EPOCH, NOW, Timestamp::MAX] {
                let delay = profile.retry_delay(&headers, b"", now);
                assert!(delay.is_none_or(|delay| delay <= LONGEST_DELAY), "{delay:?}");
            }
        }
    });
}

/// Parses one header per line.
fn headers(input: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n').take(32) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(&line[colon + 1..]);
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

/// A time in November 2026.
const NOW: Timestamp = Timestamp::from_unix_secs(1_795_000_000);

const SEEDS: &[&str] = &[
    "x-ratelimit-limit-requests:500\nx-ratelimit-remaining-requests:499\nx-ratelimit-reset-requests:120ms\nx-ratelimit-limit-tokens:30000\nx-ratelimit-remaining-tokens:29993\nx-ratelimit-reset-tokens:6m0s",
    "x-ratelimit-limit-input-images:5\nx-ratelimit-limit-project-tokens:30000\nx-ratelimit-remaining-project-tokens:-1\nx-ratelimit-reset-project-tokens:13.065s",
    "x-ratelimit-limit-tokens:1000\nx-ratelimit-remaining-tokens:-17\nx-ratelimit-reset-tokens:1\nx-ratelimit-renewalperiod-tokens:60",
    "anthropic-ratelimit-requests-limit:50\nanthropic-ratelimit-requests-remaining:49\nanthropic-ratelimit-requests-reset:2025-10-01T12:00:01Z\nanthropic-ratelimit-input-tokens-limit:40000\nanthropic-ratelimit-input-tokens-remaining:39000\nanthropic-ratelimit-input-tokens-reset:2025-10-01T12:00:01Z\nretry-after:7",
    "x-ratelimit-limit-req-10-second:5\nx-ratelimit-remaining-req-minute:2\nx-ratelimit-limit-tokens-minute:500000\nx-ratelimit-limit-tokens-month:1000000000\nx-ratelimit-tokens-query-cost:17",
    "x-ratelimit-limit:10\nx-ratelimit-remaining:9\nx-ratelimit-reset:1",
    "x-ratelimit-limit-requests-day:14400\nx-ratelimit-remaining-requests-day:14399\nx-ratelimit-reset-requests-day:33011.382867\nx-ratelimit-limit-tokens-minute:60000\nx-ratelimit-reset-tokens-minute:11.38",
    "X-RateLimit-Limit:20\nX-RateLimit-Remaining:0\nX-RateLimit-Reset:1741305600000",
    "x-amzn-bedrock-input-token-count:12\nx-amzn-bedrock-output-token-count:9\nx-amzn-bedrock-cache-read-input-token-count:0",
    "retry-after-ms:1500.5\nretry-after:2.5\nx-should-retry:true",
    "retry-after:Fri, 31 Dec 2027 23:59:59 GMT",
    "retry-after:Friday, 31-Dec-27 23:59:59 GMT",
    "retry-after:Fri Dec 31 23:59:59 2027\nx-should-retry:false",
];
