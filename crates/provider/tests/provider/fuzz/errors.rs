//! Error bodies of any content are read, classified and displayed without a panic.

use http::{HeaderMap, StatusCode};
use paceline_limiter::Timestamp;
use paceline_provider::{AZURE, ApiError, DASHSCOPE, GEMINI, LONGEST_DELAY, OPENAI, Refusal};

use paceline_testing::full::full_or;
use paceline_testing::fuzz::fuzz;

#[test]
fn error_bodies_are_read_without_panic() {
    let seeds: Vec<_> = SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    let none = HeaderMap::new();
    fuzz("errors", &seeds, |input| {
        let error = ApiError::read(input);
        let one = input.iter().map(|byte| usize::from(*byte)).sum::<usize>() % STATUSES.len();
        let statuses = full_or(STATUSES, &STATUSES[one..=one]);
        for profile in [OPENAI, AZURE, GEMINI, DASHSCOPE] {
            for status in statuses {
                let status = StatusCode::from_u16(*status).unwrap();
                let _ = profile.classify(status, &none, input);
                if let Some(refusal) = profile.refusal(status, &none, input, NOW) {
                    assert!(refusal.delay.is_none_or(|delay| delay <= Refusal::LONGEST));
                    assert!(refusal.text.chars().count() <= Refusal::LONGEST_TEXT);
                    assert!(refusal.to_string().len() < 300, "{refusal}");
                }
                if let Some(error) = &error {
                    let _ = profile.refusal_in_band(error, NOW);
                    let _ = profile.classify_in_band(error);
                }
            }
            let delay = profile.retry_delay(&none, input, Timestamp::UNIX_EPOCH);
            assert!(delay.is_none_or(|delay| delay <= LONGEST_DELAY), "{delay:?}");
        }
        if let Some(error) = error {
            assert!(error.message().len() <= 4 * 1_024);
            assert!(format!("{error}").len() < 2 * 1_024);
            assert!(format!("{error:?}").len() < 16 * 1_024);
        }
    });
}

/// 2026-09-01 00:00 UTC.
const NOW: Timestamp = Timestamp::from_unix_secs(1_788_220_800);

const STATUSES: &[u16] = &[200, 400, 401, 402, 403, 429, 500, 503, 529];

const SEEDS: &[&str] = &[
    r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 10000, Used 8782, Requested 8172. Please try again in 41.724s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":null}}"#,
    r#"{"error":{"code":"organization_spend_limit_exceeded"}}"#,
    r#"{"error":{"message":"on requests per day (RPD): Limit 200, Used 200. Please try again in 6m0s","code":"rate_limit_exceeded"}}"#,
    r#"{"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded"},"request_id":"r"}"#,
    r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    r#"[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]"#,
    r#"{"message":"Too many tokens, please wait before trying again."}"#,
    r#"{"__type":"com.amazon.coral.service#ThrottlingException","Message":"slow"}"#,
    r#"{"error":"model not found"}"#,
    r#"{"object":"error","message":"Requests rate limit exceeded","type":"invalid_request_error","code":"1300"}"#,
    r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
    r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"x"}}}"#,
    "<html><body>429 Too Many Requests</body></html>",
    "Rate limit exceeded, try again in 6ms",
];
