use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::api_state::Api;
use super::error::ApiError;
use super::extract::{PathParameter, QueryParameters};
use super::keys::check_key;
use super::page_request::PageRequest;
use super::time::{Time, millis};
use paceline::Timestamp;
use paceline::limiter::{KeyStats, LearnedLimit, LimitStats, Utilization};
use paceline::provider::RefusalKind;
use paceline::quota::Dimension;

/// The state of one key at one moment.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "KeyStats")]
pub(super) struct KeyStatsResponse {
    /// The key.
    key: String,
    /// The limits, in the order of the quota.
    limits: Vec<LimitStatsResponse>,
    /// The age of the usage in milliseconds: 0 unless a shared store keeps it, and absent if that has not
    /// answered about the key, so that its usage is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_ms: Option<u64>,
    /// The number of waiting requests.
    waiting: usize,
    /// The end of the cool-down after the provider rate limited a request; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    cooling_until: Option<Time>,
    /// The kind of the refusal that set the end of the cool-down, such as `rate` or `window`; absent if no refusal to
    /// this process has.
    #[serde(skip_serializing_if = "Option::is_none")]
    cooling_kind: Option<&'static str>,
    /// The start of an outage, in which one request at a time tests the server; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    outage_since: Option<Time>,
    /// The provider's words, while it refuses the account; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    account_refused: Option<String>,
    /// The limits measured by the provider's answers, which requests are held to.
    learned: Vec<LearnedLimitResponse>,
    /// The used parts of the account's windows, as the provider states them for subscriptions; absent if it
    /// states none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    utilization: Vec<UtilizationResponse>,
}

/// The used part of a window of the account.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Utilization")]
pub(super) struct UtilizationResponse {
    /// The provider's name of the window: `5h`, `7d`.
    window: String,
    /// The used part: 1 if the window is used up.
    used: f64,
    /// The time at which the window starts again; absent if the provider doesn't state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_at: Option<Time>,
    /// The part to which the key's quota holds its requests; absent if it doesn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_to: Option<f64>,
}

/// The state of one limit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "LimitStats")]
pub(super) struct LimitStatsResponse {
    /// The limited dimension. Amounts of `usd` are in micro-dollars.
    dimension: String,
    /// The current amount of the limit.
    limit: u64,
    /// The amount in the key's quota; larger than `limit` while the limit is reduced after a rate-limited
    /// request.
    original: u64,
    /// The length of the window in milliseconds; absent for requests in flight, and for a limit that never resets.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_ms: Option<u64>,
    /// The amount in use.
    used: u64,
    /// The amount held by open reservations.
    held: u64,
    /// The amount available to a new request.
    available: u64,
    /// The time at which the limit is completely unused again; the current time if it is unused now, and absent for
    /// a limit that never resets.
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh_at: Option<Time>,
}

/// A limit measured by the provider's answers.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "LearnedLimit")]
pub(super) struct LearnedLimitResponse {
    /// The limited dimension.
    dimension: String,
    /// The amount per second; for `concurrency`, the requests in flight.
    amount: f64,
    /// The amount per second in the key's quota; absent if it doesn't limit the dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    configured: Option<f64>,
    /// The time of the last measurement.
    measured_at: Time,
    /// The number of measurements: each one halves the error, down to some percent.
    events: u32,
    /// The origin of the measurement: `answers` to this process, an earlier run (`store`), or another
    /// program (`bus`).
    source: &'static str,
}

/// A page of keys and their state.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "StatsPage")]
pub(super) struct StatsResponse {
    /// The keys, sorted by name.
    keys: Vec<KeyStatsResponse>,
    /// The value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Handles `GET /v1/stats`: every key that has its own quota or was used recently, sorted by name. The
/// state of each key is read at its own time; a shared store is not asked for all of them.
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    QueryParameters(page): QueryParameters<PageRequest>,
) -> Result<Json<StatsResponse>, ApiError> {
    let limiter = api.limiter().clone();
    let scan = move || {
        let (keys, next) = page.of(&limiter.state().keys(), |key| key.as_str());
        let keys =
            keys.iter().map(|key| KeyStatsResponse::new(key, &limiter.stats(key), limiter.now()));
        StatsResponse { keys: keys.collect(), next }
    };
    Ok(Json(api.app.scan(scan).await?))
}

/// Handles `GET /v1/stats/{key}`. Asks the shared store, if there is one.
pub(super) async fn one(
    State(api): State<Arc<Api>>,
    PathParameter(key): PathParameter,
) -> Result<Json<KeyStatsResponse>, ApiError> {
    check_key("the key in the path", &key, api.max_key_length())?;
    api.limiter().state().refresh(&[&key]).await;
    let (stats, now) = (api.limiter().stats(&key), api.limiter().now());
    Ok(Json(KeyStatsResponse::new(&key, &stats, now)))
}

impl KeyStatsResponse {
    /// Returns the statistics of a key at one time.
    pub(super) fn new(key: &str, stats: &KeyStats, now: Timestamp) -> Self {
        Self {
            key: key.to_owned(),
            limits: stats.limits.iter().map(|limit| LimitStatsResponse::new(limit, now)).collect(),
            age_ms: stats.as_of.map(|as_of| millis(now.saturating_duration_since(as_of))),
            waiting: stats.waiting,
            cooling_until: stats.cooling_until.map(Time),
            cooling_kind: stats.cooling_kind.map(RefusalKind::as_str),
            outage_since: stats.outage.as_ref().map(|outage| Time(outage.since)),
            account_refused: stats.account_refused.as_deref().map(str::to_owned),
            learned: stats.learned.iter().map(LearnedLimitResponse::new).collect(),
            utilization: stats.utilization.iter().map(UtilizationResponse::new).collect(),
        }
    }
}

impl UtilizationResponse {
    fn new(utilization: &Utilization) -> Self {
        let Utilization { window, used, resets_at, held_to, .. } = utilization.clone();
        Self { window, used, resets_at: resets_at.map(Time), held_to }
    }
}

impl LearnedLimitResponse {
    fn new(learned: &LearnedLimit) -> Self {
        Self {
            dimension: learned.dimension.to_string(),
            amount: learned.amount,
            configured: learned.configured,
            measured_at: Time(learned.measured_at),
            events: learned.events,
            source: learned.source.as_str(),
        }
    }
}

impl LimitStatsResponse {
    fn new(stats: &LimitStats, now: Timestamp) -> Self {
        let in_flight = stats.dimension == Dimension::Concurrency;
        let is_total = stats.window.is_endless();
        Self {
            dimension: stats.dimension.to_string(),
            limit: stats.limit,
            original: stats.original,
            window_ms: (!in_flight && !is_total).then(|| millis(stats.window.as_duration())),
            used: stats.used,
            held: stats.held,
            available: stats.available,
            fresh_at: (!is_total).then(|| Time(stats.fresh_at.max(now))),
        }
    }
}
