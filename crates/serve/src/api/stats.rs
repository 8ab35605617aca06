use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::fault::Fault;
use super::json::{Asked, Name};
use super::keys::key_of;
use super::page::PageFields;
use super::state::Api;
use super::time::{Time, millis};
use tollgate::Timestamp;
use tollgate::limiter::{KeyStats, LimitStats};
use tollgate::quota::Dimension;

/// The figures of one key at one moment.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "KeyStats")]
pub(super) struct KeyTold {
    /// The key.
    key: String,
    /// Each of its limits, in the order of its quota.
    limits: Vec<LimitTold>,
    /// How many requests wait for it.
    waiting: usize,
    /// Until when it cools down after a refusal by its provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    cooling_until: Option<Time>,
}

/// The figures of one limit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "LimitStats")]
pub(super) struct LimitTold {
    /// What is counted.
    dimension: String,
    /// The limit's amount now.
    limit: u64,
    /// The limit's amount in the key's quota: more than now while a refusal has reduced it.
    original: u64,
    /// The length of its window, in milliseconds; there is none for requests in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_ms: Option<u64>,
    /// What counts against it now.
    used: u64,
    /// What open reservations hold and have not yet used.
    held: u64,
    /// What a request could still take.
    available: u64,
    /// When all of it is unused again; a time that has passed if it is.
    fresh_at: Time,
}

/// A page of keys and their figures.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "StatsPage")]
pub(super) struct StatsTold {
    /// By key.
    keys: Vec<KeyTold>,
    /// What to ask for `after`, where more follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The figures of every key that has a quota of its own or was used of late, sorted by key; one
/// moment for each, not for all of them.
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Asked(page): Asked<PageFields>,
) -> Result<Json<StatsTold>, Fault> {
    let limiter = api.limiter().clone();
    let look = move || {
        let (keys, next) = page.of(&limiter.state().keys(), |key| key.as_str());
        let keys = keys.iter().map(|key| KeyTold::new(key, &limiter.stats(key), limiter.now()));
        StatsTold { keys: keys.collect(), next }
    };
    Ok(Json(api.app.survey(look).await?))
}

/// The figures of one key, used or not.
pub(super) async fn one(
    State(api): State<Arc<Api>>,
    Name(key): Name,
) -> Result<Json<KeyTold>, Fault> {
    key_of("the key in the path", &key, api.longest_key())?;
    let (stats, now) = (api.limiter().stats(&key), api.limiter().now());
    Ok(Json(KeyTold::new(&key, &stats, now)))
}

impl KeyTold {
    /// What is told at this time.
    pub(super) fn new(key: &str, stats: &KeyStats, now: Timestamp) -> Self {
        Self {
            key: key.to_owned(),
            limits: stats.limits.iter().map(|limit| LimitTold::new(limit, now)).collect(),
            waiting: stats.waiting,
            cooling_until: stats.cooling_until.map(Time),
        }
    }
}

impl LimitTold {
    fn new(stats: &LimitStats, now: Timestamp) -> Self {
        let in_flight = stats.dimension == Dimension::Concurrency;
        Self {
            dimension: stats.dimension.to_string(),
            limit: stats.limit,
            original: stats.original,
            window_ms: (!in_flight).then(|| millis(stats.window.as_duration())),
            used: stats.used,
            held: stats.held,
            available: stats.available,
            fresh_at: Time(stats.fresh_at.max(now)),
        }
    }
}
