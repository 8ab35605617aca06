//! Errors in Gemini's format. Refusals name the quota and the retry delay in the body only.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::exceeded_limit::{ExceededLimit, LimitKind};
use crate::fault::FaultKind;

/// Returns the error of a refusal, as Gemini words it. Of a limit on spending only the status is
/// documented, so that no quota is named.
pub(super) fn refusal(refusal: &ExceededLimit, delay: Option<Duration>) -> ApiError {
    let ExceededLimit { limit, model, .. } = refusal;
    let (mut message, mut details) = (EXCEEDED.to_owned(), vec![help()]);
    if let Some((metric, id)) = quota(refusal.kind) {
        message += &format!(
            " \n* Quota exceeded for metric: {SERVICE}/{metric}, limit: {limit}, model: {model}"
        );
        details.push(quota_failure(metric, id, *limit, Some(model)));
    }
    if let Some(delay) = delay {
        message += &format!("\nPlease retry in {}.", seconds(delay));
        details.push(json!({"@type": RETRY_INFO, "retryDelay": seconds(delay)}));
    }
    ApiError::new(429, "RESOURCE_EXHAUSTED", message).with_details(details)
}

/// Returns the error of a request that is larger than a limit.
pub(super) fn too_large(limit: &ExceededLimit) -> ApiError {
    let ExceededLimit { limit, requested, .. } = limit;
    invalid(format!(
        "The input token count ({requested}) exceeds the maximum number of tokens allowed ({limit})."
    ))
}

/// Returns the error for a request over a limit that it doesn't name.
pub(super) fn unnamed_refusal() -> ApiError {
    ApiError::new(429, "RESOURCE_EXHAUSTED", UNNAMED)
}

/// Returns the error for a simulated failure.
pub(super) fn failure(kind: FaultKind) -> ApiError {
    match kind {
        FaultKind::ServerError => ApiError::new(500, "INTERNAL", INTERNAL),
        FaultKind::Overloaded => ApiError::new(503, "UNAVAILABLE", OVERLOADED),
        FaultKind::Unauthorized => invalid(NO_KEY).with_details(vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
            "metadata": {"service": "generativelanguage.googleapis.com"},
        })]),
        FaultKind::InsufficientQuota => without_quota(),
        FaultKind::RateLimited | FaultKind::TooLarge | FaultKind::DailyLimit => unnamed_refusal(),
    }
}

/// Returns the error for an unknown method or path.
pub(super) fn not_found(method: &str, path: &str) -> ApiError {
    ApiError::new(404, "NOT_FOUND", format!("No method matches {method} {path}"))
}

/// Returns the error for a model that the provider doesn't have.
pub(super) fn unknown_model(model: &str) -> ApiError {
    let message = format!(
        "models/{model} is not found for API version v1beta, or is not supported for generateContent."
    );
    ApiError::new(404, "NOT_FOUND", message)
}

/// Returns the error of an invalid request.
pub(super) fn invalid(message: impl Into<Box<str>>) -> ApiError {
    ApiError::new(400, "INVALID_ARGUMENT", message)
}

/// Returns the error of an account without any quota.
fn without_quota() -> ApiError {
    let (metric, id) = REQUESTS_PER_DAY;
    let details = vec![help(), quota_failure(metric, id, 0, None)];
    ApiError::new(429, "RESOURCE_EXHAUSTED", EXCEEDED).with_details(details)
}

/// Returns the metric and the id of a quota, if they are known.
fn quota(kind: LimitKind) -> Option<(&'static str, &'static str)> {
    let names = match kind {
        LimitKind::RequestsPerMinute => {
            ("generate_content_paid_tier_requests", "GenerateRequestsPerMinutePerProjectPerModel")
        }
        LimitKind::RequestsPerDay => REQUESTS_PER_DAY,
        LimitKind::Concurrency => {
            ("generate_content_concurrency", "GenerateContentConcurrencyPerProjectPerModel")
        }
        LimitKind::Spend => return None,
        _ => (
            "generate_content_paid_tier_input_token_count",
            "GenerateContentPaidTierInputTokensPerModelPerMinute",
        ),
    };
    Some(names)
}

fn quota_failure(metric: &str, id: &str, limit: u64, model: Option<&str>) -> Value {
    let mut violation = json!({
        "quotaMetric": format!("{SERVICE}/{metric}"),
        "quotaId": id,
        "quotaValue": limit.to_string(),
    });
    if let Some(model) = model {
        violation["quotaDimensions"] = json!({"location": "global", "model": model});
    }
    json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]})
}

fn help() -> Value {
    let link = json!({"description": "Learn more about Gemini API quotas", "url": QUOTAS});
    json!({"@type": "type.googleapis.com/google.rpc.Help", "links": [link]})
}

/// Formats a duration as protobuf JSON does, with nanoseconds: `34.074824224s`, `2s`.
fn seconds(wait: Duration) -> String {
    let text = format!("{}.{:09}", wait.as_secs(), wait.subsec_nanos());
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

const REQUESTS_PER_DAY: (&str, &str) =
    ("generate_requests_per_model_per_day", "GenerateRequestsPerDayPerProjectPerModel");
const SERVICE: &str = "generativelanguage.googleapis.com";
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
const QUOTAS: &str = "https://ai.google.dev/gemini-api/docs/rate-limits";
const EXCEEDED: &str = "You exceeded your current quota, please check your plan and billing \
    details. For more information on this error, head to: \
    https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage, head to: \
    https://ai.dev/rate-limit.";
const UNNAMED: &str = "Resource has been exhausted (e.g. check quota).";
const INTERNAL: &str = "An internal error has occurred. Please retry or report in \
    https://developers.generativeai.google/guide/troubleshooting";
const OVERLOADED: &str = "The model is overloaded. Please try again later.";
const NO_KEY: &str = "API key not valid. Please pass a valid API key.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_to_the_nanosecond() {
        assert_eq!(seconds(Duration::from_nanos(34_074_824_224)), "34.074824224s");
        assert_eq!(seconds(Duration::from_millis(500)), "0.5s");
        assert_eq!(seconds(Duration::from_secs(20)), "20s");
    }
}
