use super::ApiError;
use super::codes::has_text;
use crate::quota::Dimension;

/// Returns the dimension of the limit that an error names: in its code or type (`tokens`,
/// `requests`), in the quota's id (Gemini), else in its message. `None` if it names none.
pub(super) fn of(error: &ApiError) -> Option<Dimension> {
    error
        .codes()
        .find_map(by_code)
        .or_else(|| error.quota().and_then(by_quota))
        .or_else(|| TEXTS.iter().find(|(texts, _)| has_text(error, texts)).map(|(_, d)| d.clone()))
}

fn by_code(code: &str) -> Option<Dimension> {
    match code {
        "tokens" | "token_quota_exceeded" | "too_many_tokens_error" => Some(Dimension::Tokens),
        "requests" | "request_quota_exceeded" | "too_many_requests_error" => {
            Some(Dimension::Requests)
        }
        "input-images" => Some(Dimension::custom("input_images")),
        _ => None,
    }
}

/// `GenerateRequestsPerDayPerProjectPerModel-FreeTier`. Gemini's limit of input tokens per minute is
/// its total-token limit.
fn by_quota(quota: &str) -> Option<Dimension> {
    match quota {
        _ if quota.contains("Tokens") => Some(Dimension::Tokens),
        _ if quota.contains("Requests") => Some(Dimension::Requests),
        _ => None,
    }
}

/// The first match counts: texts about input and output tokens also match those about tokens.
const TEXTS: &[(&[&str], Dimension)] = &[
    (&["input tokens per", "input token rate"], Dimension::InputTokens),
    (&["output tokens per", "output token rate"], Dimension::OutputTokens),
    (&["oncurrent "], Dimension::Concurrency),
    (&["(TPM)", "(TPD)", "okens per ", "token rate limit", "Too many tokens"], Dimension::Tokens),
    (
        &["(RPM)", "(RPD)", "equests per ", "call rate limit", "Too many requests", "API calls /"],
        Dimension::Requests,
    ),
    // Alibaba.
    (&["Allocated quota exceeded", "model-studio/error-code#token-limit"], Dimension::Tokens),
    (&["Requests rate limit exceeded", "exceeded your current requests list"], Dimension::Requests),
];
