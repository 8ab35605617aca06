use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api_state::Api;
use super::cost::CostFields;
use super::error::ApiError;
use super::extract::JsonBody;
use super::keys::{KeyList, public_keys};
use super::stats::KeyStatsResponse;
use super::time::{Time, millis};
use paceline::Timestamp;
use paceline::engine::Wait;
use paceline::limiter::Decision;
use paceline::middleware::respond::append_headers;
use paceline_limiter::seam;

/// A check whether a request would be admitted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Decide")]
pub(super) struct DecideRequest {
    /// The keys that the request would be charged to.
    keys: KeyList,
    /// The cost of the request. Default: one request.
    #[serde(default)]
    cost: CostFields,
}

/// The decision for a request: whether every key would admit it now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Decision")]
pub(super) struct DecisionResponse {
    /// True if all keys would admit the request.
    allowed: bool,
    /// The reason of the binding key.
    #[serde(flatten)]
    reason: Reason,
    /// The binding key (the one with the longest wait), or the first key.
    key: String,
    /// The time of the decision.
    asked_at: Time,
    /// The decision and state of each key, in the order of the request.
    keys: Vec<KeyDecision>,
}

/// The decision of one key.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct KeyDecision {
    /// True if the key would admit the request.
    allowed: bool,
    #[serde(flatten)]
    reason: Reason,
    #[serde(flatten)]
    stats: KeyStatsResponse,
}

/// The reason for a decision.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Reason {
    /// A machine-readable code, such as `ok`, `unlimited` or `rpm_exceeded`.
    code: &'static str,
    /// The dimension whose limit is exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    dimension: Option<String>,
    /// The amount of that dimension that the request needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    need: Option<u64>,
    /// The amount that the limit allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    /// The time at which the request would fit if no other requests arrive; absent if it fits now, if
    /// that depends on requests in flight, and if it never fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    fits_at: Option<Time>,
    /// The time until `fits_at` in milliseconds, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// True if the request can never fit.
    never: bool,
}

/// Handles `POST /v1/decide`. Asks the shared store for the usage, if there is one.
pub(super) async fn decide(
    State(api): State<Arc<Api>>,
    JsonBody(fields): JsonBody<DecideRequest>,
) -> Result<(HeaderMap, Json<DecisionResponse>), ApiError> {
    let (keys, cost) = (fields.keys.validate(api.max_key_length())?, fields.cost.cost()?);
    let names: Vec<&str> = keys.iter().map(|key| &**key).collect();
    api.limiter().state().refresh(&names).await;
    let acquire = api.limiter().acquire_all(&keys, &cost);
    let decisions: Vec<Decision> = seam::decisions(&acquire).collect();
    // The first key wins a tie.
    let longest = decisions.iter().reduce(|a, b| if b.wait > a.wait { b } else { a });
    let binding = longest.expect("a request has a key");
    let response = DecisionResponse {
        allowed: binding.is_allowed(),
        reason: Reason::from(binding),
        key: binding.key.to_string(),
        asked_at: Time(binding.asked_at),
        keys: keys
            .iter()
            .zip(&decisions)
            .map(|(key, decision)| key_decision(key, decision))
            .collect(),
    };
    let mut headers = HeaderMap::new();
    append_headers(api.limiter(), &public_keys(&keys), &mut headers);
    Ok((headers, Json(response)))
}

fn key_decision(key: &str, decision: &Decision) -> KeyDecision {
    KeyDecision {
        allowed: decision.is_allowed(),
        reason: Reason::from(decision),
        stats: KeyStatsResponse::new(key, &decision.stats, decision.asked_at),
    }
}

impl From<&Decision> for Reason {
    fn from(decision: &Decision) -> Self {
        let fits_at = match decision.wait {
            Some(Wait::At(time)) => Some(time),
            _ => None,
        };
        let wait_ms = |time: Timestamp| millis(time - decision.asked_at);
        Self {
            code: decision.code.as_str(),
            dimension: decision.dimension.as_ref().map(ToString::to_string),
            need: decision.need.map(|need| need.amount),
            limit: decision.need.map(|need| need.limit),
            fits_at: fits_at.map(Time),
            retry_after_ms: fits_at.map(wait_ms),
            never: decision.wait == Some(Wait::Never),
        }
    }
}
