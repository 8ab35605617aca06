use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cost::CostFields;
use super::fault::Fault;
use super::json::Body;
use super::keys::{KeyList, shown};
use super::state::Api;
use super::stats::KeyTold;
use super::time::{Time, millis};
use tollgate::Timestamp;
use tollgate::engine::Wait;
use tollgate::limiter::Decision;
use tollgate::middleware::respond::describe;
use tollgate::quota::{Dimension, Limit, Quota};

/// A question whether a request would be let in.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Decide")]
pub(super) struct DecideFields {
    /// What it would be charged to.
    keys: KeyList,
    /// What it would take. Default: one request.
    #[serde(default)]
    cost: CostFields,
}

/// Whether a request would be let in now, by every key.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Decision")]
pub(super) struct DecisionTold {
    /// Whether all keys would let it in.
    allowed: bool,
    /// Of the key that binds.
    #[serde(flatten)]
    why: Why,
    /// The key that binds, or the first.
    key: String,
    /// When it was asked.
    asked_at: Time,
    /// Each key's own answer and figures, in the order of the request.
    keys: Vec<KeyDecision>,
}

/// What one key says.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct KeyDecision {
    /// Whether it would let the request in.
    allowed: bool,
    #[serde(flatten)]
    why: Why,
    #[serde(flatten)]
    stats: KeyTold,
}

/// Why, and since when not.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Why {
    /// The answer in one word, such as `ok`, `unlimited`, `rpm_exceeded`.
    code: &'static str,
    /// The dimension that falls short.
    #[serde(skip_serializing_if = "Option::is_none")]
    dimension: Option<String>,
    /// How much of it the request needs, and the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    need: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    /// When it would fit if nobody else comes; left out where it fits now, where that hangs on requests
    /// in flight, and where it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    fits_at: Option<Time>,
    /// How long that is from now, in milliseconds, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// Whether it will never fit.
    never: bool,
}

/// Says whether a request would be let in; takes nothing. Each key is looked at by itself; a custom
/// dimension only counts for the keys that limit it, if there is one.
pub(super) async fn decide(
    State(api): State<Arc<Api>>,
    Body(fields): Body<DecideFields>,
) -> Result<(HeaderMap, Json<DecisionTold>), Fault> {
    let (keys, cost) = (fields.keys.checked(api.longest_key())?, fields.cost.cost()?);
    let quotas: Vec<Quota> = keys.iter().map(|key| api.limiter().quotas().of(key)).collect();
    let decisions = keys.iter().zip(&quotas).map(|(key, quota)| {
        let counts = |name: &str| limits(quota, name) || !quotas.iter().any(|q| limits(q, name));
        api.limiter().decide(key, &cost.with_customs(counts))
    });
    let decisions: Vec<Decision> = decisions.collect();
    let binding = decisions.iter().enumerate().max_by_key(|(at, decision)| {
        // Of those that wait as long, the first.
        (rank(decision), std::cmp::Reverse(*at))
    });
    let binding = binding.map_or(&decisions[0], |(_, decision)| decision);
    let told = DecisionTold {
        allowed: binding.is_allowed(),
        why: Why::from(binding),
        key: binding.key.to_string(),
        asked_at: Time(binding.asked_at),
        keys: keys.iter().zip(&decisions).map(|(key, decision)| told(key, decision)).collect(),
    };
    let mut headers = HeaderMap::new();
    describe(api.limiter(), &shown(&keys), &mut headers);
    Ok((headers, Json(told)))
}

fn limits(quota: &Quota, custom: &str) -> bool {
    let is_it =
        |limit: &Limit| matches!(limit.dimension(), Dimension::Custom(name) if **name == *custom);
    quota.limits().iter().any(is_it)
}

fn told(key: &str, decision: &Decision) -> KeyDecision {
    KeyDecision {
        allowed: decision.is_allowed(),
        why: Why::from(decision),
        stats: KeyTold::new(key, &decision.stats, decision.asked_at),
    }
}

/// The longest wait binds: for ever, until others end, until a time.
fn rank(decision: &Decision) -> (u8, Timestamp) {
    match decision.wait {
        None => (0, Timestamp::UNIX_EPOCH),
        Some(Wait::At(time)) => (1, time),
        Some(Wait::Unknown) => (2, Timestamp::UNIX_EPOCH),
        Some(Wait::Never) => (3, Timestamp::UNIX_EPOCH),
    }
}

impl From<&Decision> for Why {
    fn from(decision: &Decision) -> Self {
        let fits_at = match decision.wait {
            Some(Wait::At(time)) => Some(time),
            _ => None,
        };
        let away = |time: Timestamp| millis(time - decision.asked_at);
        Self {
            code: decision.code.as_str(),
            dimension: decision.dimension.as_ref().map(ToString::to_string),
            need: decision.need.map(|need| need.amount),
            limit: decision.need.map(|need| need.limit),
            fits_at: fits_at.map(Time),
            retry_after_ms: fits_at.map(away),
            never: decision.wait == Some(Wait::Never),
        }
    }
}
