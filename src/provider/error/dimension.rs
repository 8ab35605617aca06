use super::ApiError;
use super::signs::says;
use crate::quota::Dimension;

/// What the limit counts that a refusal names: in its code or type (`tokens`, `requests`), in the
/// quota's id (Gemini), else in the text for people. `None` where none of them tells.
pub(super) fn of(error: &ApiError) -> Option<Dimension> {
    error
        .signs()
        .find_map(by_sign)
        .or_else(|| error.quota().and_then(by_quota))
        .or_else(|| TEXTS.iter().find(|(texts, _)| says(error, texts)).map(|(_, d)| d.clone()))
}

fn by_sign(sign: &str) -> Option<Dimension> {
    match sign {
        "tokens" | "token_quota_exceeded" | "too_many_tokens_error" => Some(Dimension::Tokens),
        "requests" | "request_quota_exceeded" | "too_many_requests_error" => {
            Some(Dimension::Requests)
        }
        "input-images" => Some(Dimension::custom("input_images")),
        _ => None,
    }
}

/// `GenerateRequestsPerDayPerProjectPerModel-FreeTier`. What Gemini calls its input tokens per minute
/// is all that its token limit counts.
fn by_quota(quota: &str) -> Option<Dimension> {
    match quota {
        _ if quota.contains("Tokens") => Some(Dimension::Tokens),
        _ if quota.contains("Requests") => Some(Dimension::Requests),
        _ => None,
    }
}

/// The first that fits: input and output tokens are tokens too.
const TEXTS: &[(&[&str], Dimension)] = &[
    (&["input tokens per", "input token rate"], Dimension::InputTokens),
    (&["output tokens per", "output token rate"], Dimension::OutputTokens),
    (&["oncurrent "], Dimension::Concurrency),
    (&["(TPM)", "(TPD)", "okens per ", "token rate limit", "Too many tokens"], Dimension::Tokens),
    (
        &["(RPM)", "(RPD)", "equests per ", "call rate limit", "Too many requests", "API calls /"],
        Dimension::Requests,
    ),
];
