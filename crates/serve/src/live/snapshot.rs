use paceline::Key;
use serde::Serialize;

use super::history::HistorySeries;
use super::live_state::LiveState;
use super::provider_traffic::Provider;
use super::recent_events::RecentEvent;
use crate::app::App;
use paceline::Timestamp;
use paceline::limiter::{
    Busiest, KeyStats, LearnedLimit, LimitStats, Limiter, Totals, Utilization,
};
use paceline::provider::RefusalKind;
use paceline::quota::Dimension;

/// A snapshot of the limiter for the page. All times are milliseconds since the Unix epoch.
#[derive(Debug, Serialize)]
pub(super) struct Snapshot {
    at: u64,
    started_at: u64,
    version: &'static str,
    /// The decisions since the limiter was created.
    totals: Counts,
    #[serde(rename = "past")]
    history: HistorySeries,
    /// The busiest keys, at most [`MAX_KEYS`], busiest first.
    keys: Vec<KeySnapshot>,
    /// The number of further keys.
    others: usize,
    /// The number of waiting requests of all keys.
    waiting: usize,
    /// Newest first.
    #[serde(rename = "news")]
    events: Vec<RecentEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Cluster>,
    #[serde(rename = "upstreams")]
    providers: Vec<Provider>,
}

#[derive(Debug, Serialize)]
struct Counts {
    granted: u64,
    denied: u64,
    waited: u64,
}

/// The state of a key, from [`Limiter::stats`].
#[derive(Debug, Serialize)]
struct KeySnapshot {
    key: String,
    waiting: usize,
    /// The end of the cool-down, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    cooling_until: Option<u64>,
    /// The reason of the cool-down, in words.
    cooling_reason: Option<&'static str>,
    /// The start of an outage.
    #[serde(skip_serializing_if = "Option::is_none")]
    outage_since: Option<u64>,
    /// The provider's words, while it refuses the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    account_refused: Option<Box<str>>,
    limits: Vec<Limit>,
    /// The limits measured by the provider's answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    learned: Vec<Learned>,
    /// The used parts of the account's windows, as texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    utilization: Vec<String>,
}

/// The texts of a [`LearnedLimit`].
#[derive(Debug, Serialize)]
struct Learned {
    limit: String,
    provenance: String,
}

/// The state of a limit, from [`LimitStats`].
#[derive(Debug, Serialize)]
struct Limit {
    dimension: String,
    limit: u64,
    /// The limit in the quota, if the current limit differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<u64>,
    used: u64,
    held: u64,
    available: u64,
    /// The length of the window; absent for requests in flight and for a limit that never resets.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u64>,
    /// The time at which the limit is completely unused; absent if it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh_at: Option<u64>,
}

/// The state of the cluster, as seen by this process.
#[derive(Debug, Serialize)]
struct Cluster {
    account: String,
    /// True if the store is reachable.
    connected: bool,
    /// The number of live members.
    members: u64,
    /// The number of decisions made without the store.
    degraded: u64,
}

impl Snapshot {
    pub(super) fn take(app: &App, state: &LiveState) -> Self {
        let limiter = &app.limiter;
        let (now, totals) = (limiter.now(), limiter.state().totals());
        let Busiest { keys, others, waiting, .. } = limiter.state().busiest(MAX_KEYS);
        Self {
            at: millis(now.as_nanos()),
            started_at: millis(state.started_at.as_nanos()),
            version: env!("CARGO_PKG_VERSION"),
            totals: totals.into(),
            history: state.history.lock().series(),
            keys: keys.into_iter().map(|(key, stats)| KeySnapshot::new(key, stats, now)).collect(),
            others,
            waiting,
            events: state.events.latest(),
            cluster: Cluster::of(app, limiter),
            providers: state.providers.all(),
        }
    }
}

impl From<Totals> for Counts {
    fn from(Totals { granted, denied, waited, .. }: Totals) -> Self {
        Self { granted, denied, waited }
    }
}

impl KeySnapshot {
    fn new(key: Key, stats: KeyStats, now: Timestamp) -> Self {
        let KeyStats {
            limits,
            waiting,
            cooling_until,
            cooling_kind,
            account_refused,
            outage,
            learned,
            utilization,
            ..
        } = stats;
        let limits = limits.into_iter().map(|limit| Limit::new(limit, now)).collect();
        let learned = learned.iter().map(|limit| Learned::new(limit, now)).collect();
        let cooling_until = cooling_until.map(millis_up);
        let utilization = utilization.iter().map(Utilization::to_string).collect();
        Self {
            key: key.into(),
            waiting,
            cooling_until,
            cooling_reason: cooling_kind.map(RefusalKind::describe),
            outage_since: outage.map(|outage| millis_up(outage.since)),
            account_refused,
            limits,
            learned,
            utilization,
        }
    }
}

impl Learned {
    fn new(limit: &LearnedLimit, now: Timestamp) -> Self {
        Self { limit: limit.to_string(), provenance: limit.provenance(now) }
    }
}

impl Limit {
    fn new(stats: LimitStats, now: Timestamp) -> Self {
        let LimitStats {
            dimension, limit, original, window, used, held, available, fresh_at, ..
        } = stats;
        let windowed = dimension != Dimension::Concurrency && !window.is_endless();
        Self {
            dimension: dimension.as_str().into(),
            limit,
            original: Some(original).filter(|&original| original != limit),
            used,
            held,
            available,
            window: windowed.then(|| millis(window.as_nanos())),
            fresh_at: (windowed && fresh_at > now && used > 0).then(|| millis_up(fresh_at)),
        }
    }
}

impl Cluster {
    fn of(app: &App, limiter: &Limiter) -> Option<Self> {
        let account = app.config.cluster.as_ref()?.account.clone();
        let status = limiter.state().backend_status().unwrap_or_default();
        let (connected, members, degraded) = (status.connected, status.members, status.degraded);
        Some(Self { account, connected, members, degraded })
    }
}

fn millis(nanos: u64) -> u64 {
    nanos / 1_000_000
}

fn millis_up(time: Timestamp) -> u64 {
    time.as_nanos().div_ceil(1_000_000)
}

/// The maximum number of keys.
pub(super) const MAX_KEYS: usize = 200;
