//! Gemini's 429 responses, which name the quota and the retry delay in the body only.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::exceeded_limit::{ExceededLimit, LimitKind};

/// Returns the error of a refusal, as Gemini words it. Of a limit on spending only the status is
/// documented, so that no quota is named.
pub(super) fn api_error(refusal: &ExceededLimit, delay: Option<Duration>) -> ApiError {
    let ExceededLimit { limit, model, .. } = refusal;
    let (mut message, mut details) = (EXCEEDED.to_owned(), vec![help()]);
    if let Some((metric, id)) = quota(refusal.kind) {
        message += &format!(
            " \n* Quota exceeded for metric: {SERVICE}/{metric}, limit: {limit}, model: {model}"
        );
        details.push(failure(metric, id, *limit, Some(model)));
    }
    if let Some(delay) = delay {
        message += &format!("\nPlease retry in {}.", seconds(delay));
        details.push(json!({"@type": RETRY_INFO, "retryDelay": seconds(delay)}));
    }
    ApiError::new(429, "RESOURCE_EXHAUSTED", message).with_details(details)
}

/// Returns the error of an account without any quota.
pub(super) fn without_quota() -> ApiError {
    let (metric, id) = REQUESTS_PER_DAY;
    let details = vec![help(), failure(metric, id, 0, None)];
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

fn failure(metric: &str, id: &str, limit: u64, model: Option<&str>) -> Value {
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
